//! The [`Backend`] itself: ties drivers, devices, contexts and modules together.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};
use opencl_sys::{cl_context, cl_device_id};

use crate::compile;
use crate::context::{Context, Place};
use crate::contexts::{Contexts, Sharing};
use crate::device::{self, Device};
use crate::driver::Driver;
use crate::handle::DeviceHandle;
use crate::library;
use crate::module::OpenClModule;
use crate::options;

/// The artifact's member.
const ARTIFACT: &str = "kernel.bin";

/// OpenCL devices as a backend: all of this machine, or those of a context that the application has.
pub struct OpenClBackend {
    library: Option<PathBuf>,
    allowed: Vec<String>,
    /// Looked for until it is found: what is installed later counts too.
    found: Mutex<Option<Arc<Found>>>,
    contexts: Contexts,
}

/// The library and its devices, which stay the same for the life of a process.
struct Found {
    driver: Arc<Driver>,
    devices: Vec<Device>,
}

impl OpenClBackend {
    /// With the system's library and the usual settings. Touches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// With settings of one's own.
    pub fn builder() -> OpenClBackendBuilder {
        OpenClBackendBuilder { library: None, allowed: Vec::new(), shared: false }
    }

    /// Which of this backend's devices it is that the application knows by this handle.
    ///
    /// # Errors
    /// [`BackendError::NoDevice`] where it is none of them.
    pub fn device_of(&self, device: cl_device_id) -> Result<DeviceId, BackendError> {
        let found = self.found()?;
        let known = found.devices.iter().find(|known| known.handle == DeviceHandle(device));
        known.map(|known| known.info.id).ok_or_else(|| BackendError::NoDevice {
            message: format!("the handle {device:p} is none of: {}", found.names()),
        })
    }

    /// How many native handles it has made and not yet released: contexts, programs, and the
    /// kernels given out as [`OpenClKernel`](crate::OpenClKernel). Its modules' are among them, also
    /// those of an abandoned one; a context of the application's is not.
    #[must_use]
    pub fn live_handles(&self) -> usize {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.as_ref().map_or(0, |found| found.driver.live.count())
    }

    fn found(&self) -> Result<Arc<Found>, BackendError> {
        let mut slot = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*slot {
            return Ok(Arc::clone(found));
        }
        let driver = Driver::new(library::load(self.library.as_ref())?);
        let devices = device::find(&driver)?;
        let found = Arc::new(Found { driver, devices });
        *slot = Some(Arc::clone(&found));
        Ok(found)
    }

    fn place(&self, found: &Found, device: &Device) -> Result<Place, BackendError> {
        Ok(self.contexts.place(&found.driver, &found.devices, device)?)
    }
}

impl Found {
    fn device(&self, id: &DeviceId) -> Result<&Device, BackendError> {
        self.devices.iter().find(|device| device.info.id == *id).ok_or_else(|| {
            let message = format!("there is no device {id}; there are: {}", self.names());
            BackendError::NoDevice { message }
        })
    }

    fn names(&self) -> String {
        let there: Vec<_> = self.devices.iter().map(|device| device.info.id.to_string()).collect();
        if there.is_empty() { "none".to_owned() } else { there.join(", ") }
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        // All of them are asked, since each keeps what its binaries are sealed for.
        let alike = self.devices.iter().filter(|device| device.target == *target);
        alike.map(Device::toolchain).reduce(|first, _| first).ok_or_else(|| {
            let message = format!("there is no device for the target `{}`", target.as_str());
            BackendError::NoDevice { message }
        })
    }
}

impl Default for OpenClBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OpenClBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClBackend")
            .field("library", &self.library)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

/// Collects the settings of an [`OpenClBackend`].
#[derive(Debug)]
#[must_use]
pub struct OpenClBackendBuilder {
    library: Option<PathBuf>,
    allowed: Vec<String>,
    shared: bool,
}

impl OpenClBackendBuilder {
    /// OpenCL's loader library, or a driver's own. Comes before `OPENCL_DYLIB_PATH` and the
    /// system's.
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.library = Some(path.into());
        self
    }

    /// Takes this option too, letter for letter. You vouch that it has the compiler read no file
    /// whose content may change.
    pub fn allow_option(mut self, option: impl Into<String>) -> Self {
        self.allowed.push(option.into());
        self
    }

    /// One context for all devices of a platform, so that they share buffers. Without it, each
    /// device has its own.
    pub fn shared_contexts(mut self) -> Self {
        self.shared = true;
        self
    }

    /// The backend. Touches nothing yet.
    #[must_use]
    pub fn build(self) -> OpenClBackend {
        let sharing = if self.shared { Sharing::Platform } else { Sharing::Nothing };
        self.finish(None, sharing)
    }

    /// A backend in a context that the application already has: its modules are made there, and
    /// work with the application's buffers and queues. The devices are those of the context, in its
    /// order; [`OpenClBackend::device_of`] tells their numbers.
    ///
    /// The context is retained until the backend and its modules are gone. Destroying a device
    /// releases the modules and leaves the context as it is: whoever lost a device makes a new
    /// context, and a new backend for it.
    ///
    /// # Errors
    /// [`BackendError::Missing`] for the library; whatever the driver says.
    ///
    /// # Safety
    /// `context` is a context, live until this returns. It was made through the library that this
    /// backend loads (see [`library`](Self::library)), or through another loader of the same driver.
    pub unsafe fn build_in(self, context: cl_context) -> Result<OpenClBackend, BackendError> {
        let driver = Driver::new(library::load(self.library.as_ref())?);
        // SAFETY: the caller's word.
        let (context, handles) = unsafe { Context::of_application(&driver, context) }?;
        let devices = device::describe_all(&driver, &handles)?;
        let found = Arc::new(Found { driver, devices });
        Ok(self.finish(Some(found), Sharing::All(Arc::new(context))))
    }

    fn finish(self, found: Option<Arc<Found>>, sharing: Sharing) -> OpenClBackend {
        let Self { library, allowed, shared: _ } = self;
        let (found, contexts) = (Mutex::new(found), Contexts::new(sharing));
        OpenClBackend { library, allowed, found, contexts }
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
        let options = options::joined(spec.name(), spec.options(), &self.allowed)?;
        let program = compile::build(&self.place(&found, device)?, spec, &options)?;
        // Before the binary, which takes longest: no binary is needed to see that this is wrong.
        let module = OpenClModule::new(program, spec.entry())?;
        let binary = module.binary()?;
        let artifact =
            (!binary.is_empty()).then(|| Artifact::new(ARTIFACT, binary).sealed(&device.seal()));
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
        artifact.check_seal(&device.seal())?;
        let options = options::joined(spec.name(), spec.options(), &self.allowed)?;
        let place = self.place(&found, device)?;
        let program = compile::load(&place, artifact.binary(), &options)?;
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
