//! The stranger's backend with one fault.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grainstore::{DeviceId, Family};
use grainstore_conformance::{BoxError, Cannot, Subject};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};

use crate::stranger::{Program, Stack, Stranger};

macro_rules! faults {
    ($($(#[$what:meta])* $name:ident,)+) => {
        /// What is wrong with the backend.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Fault { $($(#[$what])* $name,)+ }

        impl Fault {
            pub(crate) const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

faults! {
    None,
    AcceptsForeign,
    AcceptsCut,
    AcceptsFlipped,
    AcceptsEmpty,
    /// The driver ends the process when it sees a cut artifact.
    DiesOfCut,
    NoArtifact,
    NoArtifactForAReason,
    /// An artifact that only means something to the process that made it.
    ArtifactOfProcess,
    ToolchainOfProcess,
    ToolchainOfBackend,
    ForgetsOptions,
    ForgetsDefines,
    ForgetsHeaders,
    ForgetsEntry,
    NoLog,
    /// The log names a temporary file.
    LogWithPath,
    AcceptsWrong,
    CompilesNothing,
    /// It compiles without a device, and says that it does not.
    CompilesUnsaid,
    RefusesWhatItSays,
    AnyDevice,
    /// Two builds at once spoil each other.
    OneBuildAtATime,
    /// Modules of equal bytes share a handle, and the first to go takes it away.
    UnloadsEquals,
    LeaksOnUnload,
    LeaksOnFailure,
    UnloadsTwice,
    /// The context of a device that is given up goes from under its modules.
    KillsOnForget,
    /// A destroyed device can't be made again.
    OneLife,
    /// The process is aborted when it ends with modules loaded.
    DiesAtExit,
    PanicsWhenMissing,
    MissingWithoutName,
    Absent,
}

pub(crate) struct Faulty(pub(crate) Fault);

pub(crate) struct FaultyBackend {
    inner: Stack,
    fault: Fault,
    /// The library that is not there.
    missing: Option<PathBuf>,
    /// Its number in this process.
    number: usize,
    state: Mutex<State>,
    met: Condvar,
    /// Handles beyond those that the driver knows of; fewer, when it is below zero.
    stray: Arc<Mutex<isize>>,
}

#[derive(Default)]
struct State {
    /// The artifact last made, and the one for each source.
    made: Option<Artifact>,
    by_source: HashMap<Vec<u8>, Artifact>,
    shared: HashMap<Vec<u8>, Arc<AtomicBool>>,
    contexts: Arc<AtomicBool>,
    building: usize,
    spoilt: bool,
    destroyed: bool,
}

pub(crate) struct FaultyModule {
    program: Program,
    /// Others may take these away.
    gone: Arc<AtomicBool>,
    killed: Arc<AtomicBool>,
}

/// Backends, and modules, of this process.
static BACKENDS: AtomicUsize = AtomicUsize::new(0);
static MODULES: AtomicUsize = AtomicUsize::new(0);

/// What artifacts of `ArtifactOfProcess` stand for.
static TABLE: Mutex<Vec<Artifact>> = Mutex::new(Vec::new());

struct AtExit;

impl Drop for AtExit {
    fn drop(&mut self) {
        if MODULES.load(Ordering::SeqCst) > 0 {
            process::abort();
        }
    }
}

thread_local! {
    static AT_EXIT: OnceCell<AtExit> = const { OnceCell::new() };
}

impl FaultyBackend {
    fn new(fault: Fault, missing: Option<&Path>) -> Self {
        if fault == Fault::DiesAtExit && env::var_os("GRAINSTORE_CONFORMANCE_TASK").is_some() {
            AT_EXIT.with(|guard| drop(guard.set(AtExit)));
        }
        Self {
            inner: Stack::default(),
            fault,
            missing: missing.map(Path::to_owned),
            number: BACKENDS.fetch_add(1, Ordering::SeqCst),
            state: Mutex::default(),
            met: Condvar::new(),
            stray: Arc::default(),
        }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn check_there(&self) -> Result<(), BackendError> {
        match &self.missing {
            None => Ok(()),
            Some(_) if self.is(Fault::PanicsWhenMissing) => panic!("no library"),
            Some(_) if self.is(Fault::MissingWithoutName) => {
                Err(BackendError::missing("the library", "install it"))
            }
            Some(path) => Err(BackendError::missing(path.to_string_lossy(), "install `beads`")),
        }
    }

    /// The spec as this backend's memo knows it.
    fn memo(&self, spec: &KernelSpec) -> Option<Vec<u8>> {
        let mut text = format!("{:?}", spec.source());
        match self.fault {
            Fault::ForgetsOptions => text += &format!("{:?}{:?}", spec.defines(), spec.headers()),
            Fault::ForgetsDefines => text += &format!("{:?}{:?}", spec.options(), spec.headers()),
            Fault::ForgetsHeaders => text += &format!("{:?}{:?}", spec.options(), spec.defines()),
            _ => return None,
        }
        Some(text.into_bytes())
    }

    fn module(&self, program: Program, artifact: &Artifact) -> FaultyModule {
        let mut state = lock(&self.state);
        let fresh = Arc::<AtomicBool>::default();
        let gone = if self.is(Fault::UnloadsEquals) {
            let shared = state.shared.entry(artifact.binary().to_vec()).or_insert(fresh);
            if shared.load(Ordering::SeqCst) {
                *shared = Arc::default();
            }
            Arc::clone(shared)
        } else {
            fresh
        };
        MODULES.fetch_add(1, Ordering::SeqCst);
        FaultyModule { program, gone, killed: Arc::clone(&state.contexts) }
    }

    /// Whether another build came meanwhile. It waits a while for one.
    fn spoilt(&self) -> bool {
        if !self.is(Fault::OneBuildAtATime) {
            return false;
        }
        let mut state = lock(&self.state);
        state.building += 1;
        state.spoilt |= state.building > 1;
        self.met.notify_all();
        let (mut state, _) = self
            .met
            .wait_timeout_while(state, Duration::from_millis(50), |state| !state.spoilt)
            .unwrap_or_else(PoisonError::into_inner);
        state.building -= 1;
        state.spoilt
    }

    /// What the loader takes it for.
    fn mistaken(&self, artifact: &Artifact) -> Result<Artifact, BackendError> {
        let made = lock(&self.state).made.clone();
        let Some(made) = made.filter(|_| artifact.check_seal("abacus-32").is_err()) else {
            return Ok(artifact.clone());
        };
        let lengths = |artifact: &Artifact| -> Vec<usize> {
            artifact.members().iter().map(|member| member.bytes.len()).collect()
        };
        let (are, should) = (lengths(artifact), lengths(&made));
        let empty = are.contains(&0);
        let cut = !empty
            && are.iter().sum::<usize>() < should.iter().sum::<usize>()
            && artifact.members().iter().all(|member| made.member(&member.name).is_some());
        let flipped = are == should && differing_bits(artifact, &made) == 1;
        let accepted = match self.fault {
            Fault::AcceptsEmpty => empty,
            Fault::AcceptsCut => cut,
            Fault::AcceptsFlipped => flipped,
            Fault::AcceptsForeign => !empty && !cut && !flipped,
            Fault::DiesOfCut if cut => process::abort(),
            _ => false,
        };
        Ok(if accepted { made } else { artifact.clone() })
    }
}

fn differing_bits(one: &Artifact, other: &Artifact) -> u32 {
    let bytes = |artifact: &Artifact| -> Vec<u8> {
        artifact.members().iter().flat_map(|member| member.bytes.to_vec()).collect()
    };
    bytes(one).iter().zip(bytes(other)).map(|(a, b)| (a ^ b).count_ones()).sum()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Backend for FaultyBackend {
    type Module = FaultyModule;

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn family(&self) -> Family {
        self.inner.family()
    }

    fn languages(&self) -> &[Language] {
        self.inner.languages()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        self.check_there()?;
        self.inner.devices()
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        if self.is(Fault::AnyDevice) {
            return Ok(Target::new("abacus-32"));
        }
        self.inner.target(device)
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        let toolchain = self.inner.toolchain(target)?;
        Ok(match self.fault {
            Fault::ToolchainOfProcess => {
                Toolchain::new(format!("{} {}", toolchain.as_str(), process::id()))
            }
            Fault::ToolchainOfBackend => {
                Toolchain::new(format!("{} {}", toolchain.as_str(), self.number))
            }
            _ => toolchain,
        })
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(FaultyModule, Option<Artifact>), BackendError> {
        self.check_there()?;
        if self.is(Fault::OneLife) && lock(&self.state).destroyed {
            return Err(BackendError::failed("create_context", "the device was destroyed"));
        }
        let spoilt = self.spoilt();
        let built = match self.memo(spec) {
            Some(memo) => {
                let known = lock(&self.state).by_source.get(&memo).cloned();
                match known {
                    Some(artifact) => {
                        self.inner.load(device, spec, &artifact).map(|it| (it, Some(artifact)))
                    }
                    None => {
                        let built = self.inner.build(device, spec)?;
                        lock(&self.state).by_source.extend(built.1.clone().map(|it| (memo, it)));
                        Ok(built)
                    }
                }
            }
            None if self.is(Fault::ForgetsEntry) => self.inner.build(device, &bare(spec)),
            None if spoilt => self.inner.build(device, &of_source(spec, "in")),
            None => self.inner.build(device, spec),
        };
        let (program, artifact) = match built {
            Ok((program, Some(artifact))) => (program, artifact),
            Ok((_, None)) => return Err(BackendError::failed("build", "the stranger keeps one")),
            Err(error) => return self.fail(device, spec, error).map(|module| (module, None)),
        };
        let module = self.module(program, &artifact);
        let artifact = match self.fault {
            Fault::NoArtifact | Fault::NoArtifactForAReason => return Ok((module, None)),
            Fault::ArtifactOfProcess => {
                let mut table = lock(&TABLE);
                table.push(artifact);
                Artifact::new("number", table.len().to_le_bytes().to_vec()).sealed("abacus-32")
            }
            _ => artifact,
        };
        lock(&self.state).made = Some(artifact.clone());
        Ok((module, Some(artifact)))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<FaultyModule, BackendError> {
        let mut artifact = self.mistaken(artifact)?;
        if self.is(Fault::ArtifactOfProcess) && artifact.members()[0].name == "number" {
            artifact.check_seal("abacus-32")?;
            let number = artifact.binary().try_into().map(usize::from_le_bytes).unwrap();
            let found = lock(&TABLE).get(number - 1).cloned();
            artifact = found.ok_or(BackendError::InvalidArtifact { reason: "unknown".into() })?;
        }
        Ok(self.module(self.inner.load(device, spec, &artifact)?, &artifact))
    }

    fn unload(&self, module: FaultyModule) -> Result<(), BackendError> {
        MODULES.fetch_sub(1, Ordering::SeqCst);
        module.gone.store(true, Ordering::SeqCst);
        match self.fault {
            Fault::LeaksOnUnload => {
                std::mem::forget(module);
                return Ok(());
            }
            Fault::UnloadsTwice => *lock(&self.stray) -= 1,
            _ => {}
        }
        self.inner.unload(module.program)
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        lock(&self.state).destroyed = true;
        self.inner.destroy_device(device)
    }

    fn forget_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        if self.is(Fault::KillsOnForget) {
            let killed = std::mem::take(&mut lock(&self.state).contexts);
            killed.store(true, Ordering::SeqCst);
        }
        self.inner.destroy_device(device)
    }

    fn compiles_ahead(&self) -> bool {
        !self.is(Fault::CompilesUnsaid)
    }

    fn compile_for(&self, target: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        self.check_there()?;
        if self.is(Fault::RefusesWhatItSays) {
            return Err(BackendError::unsupported("this compiler is bound to its device", "no"));
        }
        let artifact = self.inner.compile_for(target, spec)?;
        let nothing = self.is(Fault::CompilesNothing);
        Ok(if nothing { Artifact::new("program", Vec::new()) } else { artifact })
    }
}

impl FaultyBackend {
    /// A build that has failed, as this backend sees it.
    fn fail(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        error: BackendError,
    ) -> Result<FaultyModule, BackendError> {
        let BackendError::Compile { log } = error else { return Err(error) };
        Err(match self.fault {
            Fault::AcceptsWrong => {
                let (program, artifact) = self.inner.build(device, &of_source(spec, "in"))?;
                return Ok(self.module(program, &artifact.unwrap()));
            }
            Fault::NoLog => BackendError::Compile { log: "\n".into() },
            Fault::LogWithPath => {
                let number = MODULES.fetch_add(1, Ordering::SeqCst);
                BackendError::Compile { log: format!("/tmp/stack-{number}: {log}") }
            }
            Fault::LeaksOnFailure => {
                *lock(&self.stray) += 1;
                BackendError::Compile { log }
            }
            _ => BackendError::Compile { log },
        })
    }
}

/// The same kernel of another source.
fn of_source(spec: &KernelSpec, source: &str) -> KernelSpec {
    KernelSpec::builder(spec.name(), spec.language()).source(source).build().unwrap()
}

/// The same kernel without its entry point.
fn bare(spec: &KernelSpec) -> KernelSpec {
    if spec.entry().is_none() {
        return spec.clone();
    }
    KernelSpec::builder(spec.name(), spec.language()).source(spec.source()).build().unwrap()
}

impl Subject for Faulty {
    type Backend = FaultyBackend;

    fn name(&self) -> &str {
        "stack"
    }

    fn backend(&self) -> Result<FaultyBackend, BackendError> {
        let nowhere = (self.0 == Fault::Absent).then_some(Path::new("libbeads.so.1"));
        Ok(FaultyBackend::new(self.0, nowhere))
    }

    fn kernel(&self, add: u32) -> KernelSpec {
        Stranger.kernel(add)
    }

    fn wrong(&self) -> KernelSpec {
        Stranger.wrong()
    }

    fn launch(&self, module: &FaultyModule, input: &[u32]) -> Result<Vec<u32>, BoxError> {
        if module.gone.load(Ordering::SeqCst) || module.killed.load(Ordering::SeqCst) {
            return Err("the handle is stale".into());
        }
        Stranger.launch(&module.program, input)
    }

    fn live_handles(&self, backend: &FaultyBackend) -> usize {
        backend.inner.live_handles().wrapping_add_signed(*lock(&backend.stray))
    }

    fn with_header(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Stranger.with_header(add)
    }

    fn with_define(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Stranger.with_define(add)
    }

    fn with_option(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Stranger.with_option(add)
    }

    fn with_constant(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Stranger.with_constant(add)
    }

    fn artifact(&self, _: &FaultyBackend) -> Result<(), Cannot> {
        match self.0 {
            Fault::NoArtifactForAReason => Err(Cannot::because("the beads remember nothing")),
            _ => Ok(()),
        }
    }

    fn without_library(&self, nowhere: &Path) -> Result<FaultyBackend, Cannot> {
        Ok(FaultyBackend::new(self.0, Some(nowhere)))
    }
}
