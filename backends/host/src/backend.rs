//! The [`Backend`] itself: ties compiler, artifact and module together.

use std::path::PathBuf;

use grainstore::{DeviceId, Family};
use grainstore_runtime::parts::Live;
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};

use crate::artifact;
use crate::builder::{HostBackendBuilder, Settings};
use crate::compile;
use crate::compiler::Choice;
use crate::device;
use crate::module::{self, HostModule};
use crate::object_file;
use crate::options;
use crate::toolchain::Identities;

/// The plain CPU as a backend: C compiled by the system's compiler.
///
/// It holds no driver state: only what the compiler has said of itself.
#[derive(Debug)]
pub struct HostBackend {
    choice: Choice,
    identities: Identities,
    settings: Settings,
    live: Live,
}

impl HostBackend {
    /// With the system's compiler and the usual settings. Touches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// With settings of one's own.
    pub fn builder() -> HostBackendBuilder {
        HostBackendBuilder::default()
    }

    pub(crate) fn with(compiler: Option<PathBuf>, settings: Settings) -> Self {
        let choice = Choice::new(compiler);
        Self { choice, identities: Identities::default(), settings, live: Live::default() }
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
        self.live.count()
    }

    fn module(&self, bytes: &[u8], functions: Vec<String>) -> Result<HostModule, BackendError> {
        HostModule::load(bytes, functions, self.settings.scratch.as_deref(), &self.live)
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
        Ok((module, Some(artifact::pack(bytes))))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<HostModule, BackendError> {
        device::check(device)?;
        let (bytes, functions) = artifact::unpack(artifact)?;
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
        self.compile(spec).map(|(bytes, _)| artifact::pack(bytes))
    }
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
