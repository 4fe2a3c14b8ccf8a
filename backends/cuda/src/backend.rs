//! The [`Backend`] itself: ties compiler, driver, devices and modules together.

use std::fmt;
use std::sync::Arc;

use grainstore::{DeviceId, Family};
use grainstore_runtime::parts::Sought;
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};

use crate::artifact;
use crate::assembler::Refused;
use crate::builder::{CudaBackendBuilder, Settings};
use crate::compile::{self, Compiled};
use crate::context::Context;
use crate::device::Device;
use crate::found::Found;
use crate::loaded::Loaded;
use crate::module::CudaModule;
use crate::nvrtc::Nvrtc;
use crate::ready::{self, not_taken};
use crate::target::{self, Architecture, Code};
use crate::toolchain;

/// NVIDIA's devices as a backend: all of this machine, or the one of a context that the application
/// has. Without a driver it still compiles.
pub struct CudaBackend {
    settings: Settings,
    nvrtc: Sought<Nvrtc>,
    found: Sought<Found>,
}

impl CudaBackend {
    /// With the system's libraries and the usual settings. Touches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// With settings of one's own.
    pub fn builder() -> CudaBackendBuilder {
        CudaBackendBuilder::default()
    }

    pub(crate) fn with(settings: Settings, found: Option<Found>) -> Self {
        let found = found.map_or_else(Sought::new, Sought::from);
        Self { settings, nvrtc: Sought::new(), found }
    }

    /// The identifier that the driver, and other tools of NVIDIA's, have for a device.
    ///
    /// # Errors
    /// [`BackendError::Missing`] for the driver, [`BackendError::NoDevice`] for the device.
    pub fn uuid(&self, device: &DeviceId) -> Result<[u8; 16], BackendError> {
        Ok(self.found()?.device(device)?.uuid)
    }

    /// How many native handles it has made and not yet released: references to primary contexts,
    /// and modules, also those of an abandoned one; a context of the application's is not among
    /// them.
    #[must_use]
    pub fn live_handles(&self) -> usize {
        self.found.get().map_or(0, |found| found.driver.live.count())
    }

    fn nvrtc(&self) -> Result<Arc<Nvrtc>, BackendError> {
        self.nvrtc.get_or_find(|| Nvrtc::load(self.settings.nvrtc.as_deref()))
    }

    fn found(&self) -> Result<Arc<Found>, BackendError> {
        self.found.get_or_find(|| Found::all(&self.settings))
    }

    fn architecture(&self, device: &Device) -> Architecture {
        let Settings { code, features, .. } = self.settings;
        let nvrtc = self.nvrtc().ok();
        let known = nvrtc.as_ref().map(|nvrtc| nvrtc.known.as_slice());
        target::choose(device.capability, known, code, features)
    }

    /// What artifacts of this spec are sealed for.
    fn label(
        &self,
        architecture: &Architecture,
        spec: &KernelSpec,
    ) -> Result<String, BackendError> {
        let toolchain = self.toolchain_for(&architecture.target(), spec)?;
        Ok(format!("{architecture} | {}", toolchain.as_str()))
    }

    /// Code for this architecture; `context` has the driver assemble where that is its part.
    fn compile(
        &self,
        architecture: &Architecture,
        spec: &KernelSpec,
        context: Option<&Context>,
    ) -> Result<Compiled, BackendError> {
        if spec.language() == Language::CudaCpp {
            return compile::cuda_cpp(&*self.nvrtc()?, architecture, spec, &self.settings.allowed);
        }
        ready::code(architecture, spec, context)
    }
}

/// The driver refused an artifact.
fn not_loaded(Refused { failure, log }: Refused) -> BackendError {
    if failure.is_bad_image() {
        let reason = format!("{failure}\n{log}").trim_end().to_owned();
        return BackendError::InvalidArtifact { reason };
    }
    failure.into()
}

/// Loads code in its form.
fn load(context: &Arc<Context>, code: Code, bytes: &[u8]) -> Result<Loaded, Refused> {
    match code {
        Code::Cubin => context.load(bytes),
        Code::Ptx => context.load(&[bytes, b"\0"].concat()),
    }
}

impl Default for CudaBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CudaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaBackend").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Backend for CudaBackend {
    type Module = CudaModule;

    fn name(&self) -> &str {
        "cuda"
    }

    fn family(&self) -> Family {
        Family::CUDA
    }

    fn languages(&self) -> &[Language] {
        &[Language::CudaCpp, Language::Ptx, Language::Cubin]
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        // Its version is in every device's keys: so the first request need not wait until it is
        // loaded. Without it, what is ready-made still runs.
        let _ = self.nvrtc();
        Ok(self.found()?.devices.iter().map(|device| device.info.clone()).collect())
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        Ok(self.architecture(self.found()?.device(device)?).target())
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        Architecture::of(target)?;
        match self.nvrtc() {
            Ok(nvrtc) => Ok(toolchain::of_nvrtc(&nvrtc)),
            // What is ready-made still runs, where there is a driver.
            Err(missing) => match self.found() {
                Ok(found) => Ok(toolchain::of_driver_alone(&found.driver)),
                Err(_) => Err(missing),
            },
        }
    }

    fn toolchain_for(&self, target: &Target, spec: &KernelSpec) -> Result<Toolchain, BackendError> {
        let architecture = Architecture::of(target)?;
        match spec.language() {
            Language::Ptx if architecture.code == Code::Cubin => {
                let found = self.found().ok();
                toolchain::of_ready_made(spec.language(), found.as_ref().map(|it| &*it.driver))
            }
            Language::Ptx | Language::Cubin => toolchain::of_ready_made(spec.language(), None),
            _ => Ok(toolchain::of_nvrtc(&*self.nvrtc()?)),
        }
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(CudaModule, Option<Artifact>), BackendError> {
        let found = self.found()?;
        let device = found.device(device)?;
        let architecture = self.architecture(device);
        let context = found.context(device)?;
        let compiled = self.compile(&architecture, spec, Some(&context))?;
        let artifact = artifact::pack(&compiled, &self.label(&architecture, spec)?);
        let Compiled { code, bytes, names } = compiled;
        let loaded = load(&context, code, &bytes).map_err(|refused| {
            if spec.language() == Language::CudaCpp && refused.failure.is_bad_image() {
                let what = format!(
                    "the driver, of CUDA {}, refuses what NVRTC made for {architecture}: {}",
                    found.driver.version(),
                    refused.failure
                );
                let hint = "update the driver, or take an NVRTC that is not newer than it";
                return BackendError::unsupported(what, hint);
            }
            not_taken(refused)
        })?;
        Ok((CudaModule::new(loaded, code, names, spec.entry())?, Some(artifact)))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<CudaModule, BackendError> {
        let found = self.found()?;
        let device = found.device(device)?;
        let label = self.label(&self.architecture(device), spec)?;
        let (code, names) = artifact::unpack(artifact, &label)?;
        let context = found.context(device)?;
        let loaded = load(&context, code, artifact.binary()).map_err(not_loaded)?;
        CudaModule::new(loaded, code, names, spec.entry())
    }

    fn unload(&self, module: CudaModule) -> Result<(), BackendError> {
        module.release()
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        // Where a module still uses it, the last one releases it.
        match self.take_context(device).and_then(Arc::into_inner) {
            Some(context) => context.release().map_err(BackendError::from),
            None => Ok(()),
        }
    }

    fn forget_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        match self.take_context(device) {
            // All of the process share it, and it would be as lost the next time.
            Some(context) if context.is_lost() => context.reset().map_err(BackendError::from),
            _ => Ok(()),
        }
    }

    fn compiles_ahead(&self) -> bool {
        true
    }

    fn compile_for(&self, target: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        let architecture = Architecture::of(target)?;
        let compiled = self.compile(&architecture, spec, None)?;
        Ok(artifact::pack(&compiled, &self.label(&architecture, spec)?))
    }
}

impl CudaBackend {
    /// The context of a device, if it was ever needed. Loads nothing.
    fn take_context(&self, device: &DeviceId) -> Option<Arc<Context>> {
        self.found.get()?.device(device).ok()?.take_context()
    }
}
