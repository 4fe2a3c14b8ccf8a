//! The [`Backend`] itself: ties compiler, artifact and module together.

use std::path::PathBuf;
use std::time::Duration;

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};

use crate::compile::{self, Settings};
use crate::compiler::Choice;
use crate::device;
use crate::identity::Identities;
use crate::live::Count;
use crate::module::{self, HostModule};
use crate::object_file;
use crate::options;

/// The plain CPU as a backend: C compiled by the system's compiler.
///
/// It holds no driver state: only what the compiler has said of itself.
#[derive(Debug)]
pub struct HostBackend {
    choice: Choice,
    identities: Identities,
    settings: Settings,
    loaded: Count,
}

impl HostBackend {
    /// With the system's compiler and the usual settings. Touches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// With settings of one's own.
    pub fn builder() -> HostBackendBuilder {
        HostBackendBuilder {
            compiler: None,
            settings: Settings {
                scratch: None,
                deadline: Duration::from_secs(300),
                allowed: Vec::new(),
            },
        }
    }

    /// Kills the compilers that run now, with all that they started, and starts none any more: for
    /// a program that has been told to end. Their builds fail; what is loaded stays good.
    pub fn stop(&self) {
        self.choice.stop();
    }

    /// The shared objects of this backend that are loaded just now: none is left when every module
    /// was unloaded or dropped.
    #[must_use]
    pub fn live_handles(&self) -> usize {
        self.loaded.get()
    }

    fn module(&self, bytes: &[u8], functions: Vec<String>) -> Result<HostModule, BackendError> {
        HostModule::load(bytes, functions, self.settings.scratch.as_deref(), &self.loaded)
    }

    /// Compiles, and looks at the outcome: the shared object's bytes and its functions.
    fn compile(&self, spec: &KernelSpec) -> Result<(Vec<u8>, Vec<String>), BackendError> {
        let bytes = compile::compile(&self.choice.find()?, &self.settings, spec)?;
        let functions = object_file::functions(&bytes).map_err(|reason| {
            BackendError::failed(
                "loading what the compiler made",
                format!("{reason}; `CC` must name a compiler for {}", device::target().as_str()),
            )
        })?;
        if let Some(entry) = spec.entry() {
            module::require(&functions, entry)?;
        }
        Ok((bytes, functions))
    }
}

impl Default for HostBackend {
    fn default() -> Self {
        Self::new()
    }
}

/// Collects the settings of a [`HostBackend`].
#[derive(Debug)]
#[must_use]
pub struct HostBackendBuilder {
    compiler: Option<PathBuf>,
    settings: Settings,
}

impl HostBackendBuilder {
    /// The compiler: a path, or a name to look for in `PATH`. Comes before `$CC` and all others.
    pub fn compiler(mut self, path: impl Into<PathBuf>) -> Self {
        self.compiler = Some(path.into());
        self
    }

    /// How long one run of the compiler may take before it is killed. The default is five minutes.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// The folder in which private working folders are made. The default is the system's own for
    /// temporary files.
    pub fn scratch_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.scratch = Some(folder.into());
        self
    }

    /// Takes this option too, letter for letter. You vouch that it has the compiler read no file
    /// whose content may change, and write none.
    pub fn allow_option(mut self, option: impl Into<String>) -> Self {
        self.settings.allowed.push(option.into());
        self
    }

    /// The backend. Touches nothing yet.
    #[must_use]
    pub fn build(self) -> HostBackend {
        HostBackend {
            choice: Choice::new(self.compiler),
            identities: Identities::default(),
            settings: self.settings,
            loaded: Count::default(),
        }
    }
}

impl Backend for HostBackend {
    type Module = HostModule;

    fn name(&self) -> &str {
        "host"
    }

    fn family(&self) -> Family {
        Family::HOST
    }

    fn languages(&self) -> &[Language] {
        &[Language::C]
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        let compiler = self.choice.find()?;
        let identity = self.identities.of(&compiler, self.settings.deadline)?;
        let driver = identity.version.clone();
        Ok(vec![DeviceInfo { id: device::DEVICE, name: device::processor(), driver }])
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        device::check(device)?;
        Ok(device::target())
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        check_target(target)?;
        let identity = self.identities.of(&self.choice.find()?, self.settings.deadline)?;
        Ok(Toolchain::new(identity.text()))
    }

    fn toolchain_for(&self, target: &Target, spec: &KernelSpec) -> Result<Toolchain, BackendError> {
        let native = options::for_this_processor(spec.options());
        if native.is_empty() {
            return self.toolchain(target);
        }
        check_target(target)?;
        let compiler = self.choice.find()?;
        let identity = self.identities.of(&compiler, self.settings.deadline)?;
        let native = identity.native(&compiler, &native, self.settings.deadline)?;
        Ok(Toolchain::new(format!("{}; native is {native}", identity.text())))
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(HostModule, Option<Artifact>), BackendError> {
        device::check(device)?;
        let (bytes, functions) = self.compile(spec)?;
        let module = self.module(&bytes, functions)?;
        Ok((module, Some(artifact(bytes))))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<HostModule, BackendError> {
        device::check(device)?;
        artifact.check_seal(device::target().as_str())?;
        let bytes = artifact.binary();
        let functions = object_file::functions(bytes)
            .map_err(|reason| BackendError::InvalidArtifact { reason })?;
        if let Some(entry) = spec.entry() {
            module::require(&functions, entry)?;
        }
        self.module(bytes, functions)
    }

    fn unload(&self, module: HostModule) -> Result<(), BackendError> {
        module.close()
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        // The processor has no context.
        device::check(device)
    }

    fn compiles_ahead(&self) -> bool {
        true
    }

    fn compile_for(&self, target: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        check_target(target)?;
        self.compile(spec).map(|(bytes, _)| artifact(bytes))
    }
}

/// The bytes as an artifact, sealed: the system's loader runs whatever it is given.
fn artifact(bytes: Vec<u8>) -> Artifact {
    Artifact::new(compile::ARTIFACT, bytes).sealed(device::target().as_str())
}

fn check_target(target: &Target) -> Result<(), BackendError> {
    let native = device::target();
    if *target == native {
        return Ok(());
    }
    Err(BackendError::unsupported(
        format!("the host backend cannot compile for `{}`", target.as_str()),
        format!("it makes code for the machine it runs on, `{}`", native.as_str()),
    ))
}
