//! A driver that is made of counters: a backend whose every handle is accounted for, and that fails,
//! waits and changes as a test tells it to.
//!
//! It behaves as drivers do. A context is made by the first build or load on a device; modules keep
//! it alive; a module that is dropped and not released is a leak, which `Fake::leaked` shows.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

pub mod executor;
pub mod gate;
pub mod store;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};

use gate::Gate;

/// A handle of the fake; clones are the same driver.
#[derive(Clone)]
pub struct Fake {
    driver: Arc<Driver>,
}

pub struct Driver {
    name: String,
    family: Family,
    state: Mutex<State>,
    counts: Counts,
    /// Set when nothing may call the driver any more; every call then fails the test.
    sealed: AtomicBool,
}

struct State {
    devices: Vec<u32>,
    target: String,
    toolchain: String,
    missing: bool,
    contexts: HashMap<u32, Arc<Context>>,
    script: HashMap<Call, VecDeque<BackendError>>,
    build_gate: Option<Gate>,
    unload_gate: Option<Gate>,
    log: Vec<String>,
    violations: Vec<String>,
}

#[derive(Default)]
struct Counts {
    modules: AtomicUsize,
    contexts: AtomicUsize,
    contexts_made: AtomicUsize,
    leaked: AtomicUsize,
    calls: Mutex<HashMap<Call, usize>>,
}

/// A call of the driver, for counting and for scripting its failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Devices,
    Target,
    Toolchain,
    Build,
    Load,
    Unload,
    DestroyDevice,
    ForgetDevice,
}

/// What modules share: alive until the last of them, and the driver's own hold, is gone.
#[derive(Debug)]
pub struct Context {
    device: u32,
    /// No other context of the driver has it.
    number: usize,
    driver: Weak<Driver>,
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.upgrade() {
            driver.counts.contexts.fetch_sub(1, Ordering::SeqCst);
            driver.note(format!("context {} gone", self.device));
        }
    }
}

/// A loaded kernel.
#[derive(Debug)]
pub struct FakeModule {
    pub name: String,
    pub source: Vec<u8>,
    /// Which life of the device it was made in.
    context: Arc<Context>,
    driver: Arc<Driver>,
    released: bool,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Driver")
    }
}

impl FakeModule {
    /// The number of the context that it lives in.
    pub fn context(&self) -> usize {
        self.context.number
    }
}

impl Drop for FakeModule {
    fn drop(&mut self) {
        if !self.released {
            self.driver.counts.leaked.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Fake {
    /// A driver of one device.
    pub fn new() -> Self {
        Self::named("fake", Family::new("Fake"))
    }

    pub fn named(name: &str, family: Family) -> Self {
        let state = State {
            devices: vec![0],
            target: "fake-1".into(),
            toolchain: "fakec 1".into(),
            missing: false,
            contexts: HashMap::new(),
            script: HashMap::new(),
            build_gate: None,
            unload_gate: None,
            log: Vec::new(),
            violations: Vec::new(),
        };
        let driver = Driver {
            name: name.into(),
            family,
            state: Mutex::new(state),
            counts: Counts::default(),
            sealed: AtomicBool::new(false),
        };
        Self { driver: Arc::new(driver) }
    }

    pub fn id(&self, index: u32) -> DeviceId {
        DeviceId::new(self.driver.family, index)
    }

    pub fn with_devices(self, count: u32) -> Self {
        self.driver.state().devices = (0..count).collect();
        self
    }

    /// From now on its library is not there.
    pub fn uninstall(&self) {
        self.driver.state().missing = true;
    }

    pub fn set_toolchain(&self, text: &str) {
        self.driver.state().toolchain = text.into();
    }

    /// The next call of this kind that is not scripted yet fails like this.
    pub fn fail(&self, call: Call, error: BackendError) {
        self.driver.state().script.entry(call).or_default().push_back(error);
    }

    /// Holds every build inside the compiler from now on.
    pub fn hold_builds(&self) -> Gate {
        let gate = Gate::new();
        self.driver.state().build_gate = Some(gate.clone());
        gate
    }

    /// Holds every unload inside the driver from now on.
    pub fn hold_unloads(&self) -> Gate {
        let gate = Gate::new();
        self.driver.state().unload_gate = Some(gate.clone());
        gate
    }

    /// From now on every call is a violation.
    pub fn seal(&self) {
        self.driver.sealed.store(true, Ordering::SeqCst);
    }

    pub fn calls(&self, call: Call) -> usize {
        *lock(&self.driver.counts.calls).get(&call).unwrap_or(&0)
    }

    pub fn builds(&self) -> usize {
        self.calls(Call::Build)
    }

    pub fn loads(&self) -> usize {
        self.calls(Call::Load)
    }

    /// Modules that are loaded just now.
    pub fn modules(&self) -> usize {
        self.driver.counts.modules.load(Ordering::SeqCst)
    }

    /// Contexts that are there just now.
    pub fn contexts(&self) -> usize {
        self.driver.counts.contexts.load(Ordering::SeqCst)
    }

    /// Modules that were dropped and never released.
    pub fn leaked(&self) -> usize {
        self.driver.counts.leaked.load(Ordering::SeqCst)
    }

    /// What happened so far, in order.
    pub fn log(&self) -> Vec<String> {
        self.driver.state().log.clone()
    }

    pub fn note(&self, what: impl Into<String>) {
        self.driver.note(what.into());
    }

    /// What should not have happened.
    pub fn violations(&self) -> Vec<String> {
        self.driver.state().violations.clone()
    }

    /// Nothing is left of anything, and nothing went wrong.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert_eq!(self.violations(), Vec::<String>::new());
        assert_eq!((self.modules(), self.contexts(), self.leaked()), (0, 0, 0));
    }
}

impl Driver {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn note(&self, what: String) {
        self.state().log.push(what);
    }

    /// Counts a call, and gives the failure that the test wants of it.
    fn enter(&self, call: Call) -> Result<(), BackendError> {
        *lock(&self.counts.calls).entry(call).or_default() += 1;
        let mut state = self.state();
        if self.sealed.load(Ordering::SeqCst) {
            state.violations.push(format!("{call:?} after the end"));
        }
        match state.script.get_mut(&call).and_then(VecDeque::pop_front) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn check(&self, device: &DeviceId) -> Result<(), BackendError> {
        if self.state().devices.contains(&device.index()) {
            Ok(())
        } else {
            Err(BackendError::NoDevice { message: format!("there is no {device}") })
        }
    }

    fn module(self: &Arc<Self>, device: &DeviceId, spec: &KernelSpec, source: &[u8]) -> FakeModule {
        let mut state = self.state();
        let context = state.contexts.entry(device.index()).or_insert_with(|| {
            self.counts.contexts.fetch_add(1, Ordering::SeqCst);
            let number = self.counts.contexts_made.fetch_add(1, Ordering::SeqCst);
            Arc::new(Context { device: device.index(), number, driver: Arc::downgrade(self) })
        });
        let context = Arc::clone(context);
        drop(state);
        self.counts.modules.fetch_add(1, Ordering::SeqCst);
        let (name, driver) = (spec.name().to_owned(), Arc::clone(self));
        FakeModule { name, source: source.to_vec(), context, driver, released: false }
    }
}

const MAGIC: &[u8] = b"fake:";

impl Backend for Fake {
    type Module = FakeModule;

    fn name(&self) -> &str {
        &self.driver.name
    }

    fn family(&self) -> Family {
        self.driver.family
    }

    fn languages(&self) -> &[Language] {
        &[Language::OpenClC, Language::C]
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        self.driver.enter(Call::Devices)?;
        let state = self.driver.state();
        if state.missing {
            return Err(BackendError::missing("libfake.so.1", "install `fake-runtime`"));
        }
        let info = |index: &u32| DeviceInfo {
            id: self.id(*index),
            name: format!("Fake {index}"),
            driver: "fake 1.0".into(),
        };
        Ok(state.devices.iter().map(info).collect())
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        self.driver.enter(Call::Target)?;
        self.driver.check(device)?;
        Ok(Target::new(self.driver.state().target.clone()))
    }

    fn toolchain(&self, _target: &Target) -> Result<Toolchain, BackendError> {
        self.driver.enter(Call::Toolchain)?;
        Ok(Toolchain::new(self.driver.state().toolchain.clone()))
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(FakeModule, Option<Artifact>), BackendError> {
        let gate = self.driver.state().build_gate.clone();
        let entered = self.driver.enter(Call::Build);
        if let Some(gate) = gate {
            gate.pass(spec.name());
        }
        entered?;
        self.driver.check(device)?;
        if spec.source().starts_with(b"error") {
            return Err(BackendError::Compile { log: "fake.cl:1: error: no".into() });
        }
        assert!(!spec.source().starts_with(b"panic"), "the compiler lost its head");
        let module = self.driver.module(device, spec, spec.source());
        self.note(format!("build {}", spec.name()));
        Ok((module, Some(Artifact::new("kernel.fake", [MAGIC, spec.source()].concat()))))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<FakeModule, BackendError> {
        self.driver.enter(Call::Load)?;
        self.driver.check(device)?;
        let Some(source) = artifact.binary().strip_prefix(MAGIC) else {
            return Err(BackendError::InvalidArtifact { reason: "wrong magic".into() });
        };
        let module = self.driver.module(device, spec, source);
        self.note(format!("load {}", spec.name()));
        Ok(module)
    }

    fn unload(&self, mut module: FakeModule) -> Result<(), BackendError> {
        let gate = self.driver.state().unload_gate.clone();
        let entered = self.driver.enter(Call::Unload);
        if let Some(gate) = gate {
            gate.pass(&module.name);
        }
        module.released = true;
        self.driver.counts.modules.fetch_sub(1, Ordering::SeqCst);
        self.note(format!("unload {}", module.name));
        drop(module);
        entered
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        let entered = self.driver.enter(Call::DestroyDevice);
        self.note(format!("destroy {}", device.index()));
        let context = self.driver.state().contexts.remove(&device.index());
        if context.as_ref().is_some_and(|context| Arc::strong_count(context) > 1) {
            let what = format!("device {} destroyed under its modules", device.index());
            self.driver.state().violations.push(what);
        }
        drop(context);
        entered
    }

    fn forget_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        let entered = self.driver.enter(Call::ForgetDevice);
        self.note(format!("forget {}", device.index()));
        let context = self.driver.state().contexts.remove(&device.index());
        drop(context);
        entered
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A kernel of this name.
pub fn spec(name: &str) -> KernelSpec {
    source(name, &format!("kernel void {name}() {{}}"))
}

/// A kernel of this name and source.
pub fn source(name: &str, source: &str) -> KernelSpec {
    KernelSpec::builder(name, Language::OpenClC).source(source).entry(name).build().unwrap()
}
