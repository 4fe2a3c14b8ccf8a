//! The [`Backend`] itself: ties drivers, devices, contexts and modules together.

use std::fmt;
use std::sync::Arc;

use grainstore::{DeviceId, Family};
use grainstore_runtime::parts::Sought;
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};
use opencl_sys::cl_device_id;

use crate::artifact;
use crate::builder::{OpenClBackendBuilder, Settings};
use crate::compile;
use crate::context::Place;
use crate::contexts::{Contexts, Sharing};
use crate::device::Device;
use crate::found::Found;
use crate::handle::DeviceHandle;
use crate::module::OpenClModule;
use crate::options;

/// OpenCL devices as a backend: all of this machine, or those of a context that the application has.
pub struct OpenClBackend {
    settings: Settings,
    found: Sought<Found>,
    contexts: Contexts,
}

impl OpenClBackend {
    /// With the system's library and the usual settings. Touches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// With settings of one's own.
    pub fn builder() -> OpenClBackendBuilder {
        OpenClBackendBuilder::default()
    }

    pub(crate) fn with(settings: Settings, found: Option<Found>, sharing: Sharing) -> Self {
        let found = found.map_or_else(Sought::new, Sought::from);
        Self { settings, found, contexts: Contexts::new(sharing) }
    }

    /// Which of this backend's devices it is that the application knows by this handle.
    ///
    /// # Errors
    /// [`BackendError::NoDevice`] where it is none of them.
    pub fn device_of(&self, device: cl_device_id) -> Result<DeviceId, BackendError> {
        let found = self.found()?;
        let known = found.devices.iter().find(|known| known.handle == DeviceHandle(device));
        known.map(|known| known.info.id).ok_or_else(|| {
            BackendError::no_device(format!("with the handle {device:p}"), found.ids())
        })
    }

    /// How many native handles it has made and not yet released: contexts, programs, and the
    /// kernels given out as [`OpenClKernel`](crate::OpenClKernel). Its modules' are among them, also
    /// those of an abandoned one; a context of the application's is not.
    #[must_use]
    pub fn live_handles(&self) -> usize {
        self.found.get().map_or(0, |found| found.driver.live.count())
    }

    fn found(&self) -> Result<Arc<Found>, BackendError> {
        self.found.get_or_find(|| Found::all(&self.settings))
    }

    fn place(&self, found: &Found, device: &Device) -> Result<Place, BackendError> {
        Ok(self.contexts.place(&found.driver, &found.devices, device)?)
    }
}

impl Default for OpenClBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OpenClBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClBackend").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Backend for OpenClBackend {
    type Module = OpenClModule;

    fn name(&self) -> &str {
        "opencl"
    }

    fn family(&self) -> Family {
        Family::OPENCL
    }

    fn languages(&self) -> &[Language] {
        &[Language::OpenClC]
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        Ok(self.found()?.devices.iter().map(|device| device.info.clone()).collect())
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        Ok(self.found()?.device(device)?.target.clone())
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        self.found()?.toolchain(target)
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(OpenClModule, Option<Artifact>), BackendError> {
        let found = self.found()?;
        let device = found.device(device)?;
        let options = options::check(spec.name(), spec.options(), &self.settings.allowed)?;
        let program = compile::compile(&self.place(&found, device)?, spec, &options)?;
        // Before the binary, which takes longest: no binary is needed to see that this is wrong.
        let module = OpenClModule::new(program, spec.entry())?;
        let artifact = artifact::pack(module.binary()?, &device.seal());
        Ok((module, artifact))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<OpenClModule, BackendError> {
        let found = self.found()?;
        let device = found.device(device)?;
        let binary = artifact::unpack(artifact, &device.seal())?;
        let options = options::check(spec.name(), spec.options(), &self.settings.allowed)?;
        let place = self.place(&found, device)?;
        let program = compile::load(&place, binary, &options)?;
        OpenClModule::new(program, spec.entry())
    }

    fn unload(&self, module: OpenClModule) -> Result<(), BackendError> {
        module.release()
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        self.contexts.release(device).map_err(BackendError::from)
    }

    fn forget_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        self.contexts.forget(device).map_err(BackendError::from)
    }
}
