//! The [`Backend`] itself: ties drivers, devices, contexts and modules together.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};

use crate::compile;
use crate::device::{self, Device};
use crate::driver::{Context, Driver};
use crate::library;
use crate::module::OpenClModule;
use crate::options;

/// The artifact's member.
const ARTIFACT: &str = "kernel.bin";

/// All OpenCL devices of this machine, as a backend.
pub struct OpenClBackend {
    library: Option<PathBuf>,
    allowed: Vec<String>,
    /// Looked for until it is found: what is installed later counts too.
    found: Mutex<Option<Arc<Found>>>,
    /// By the device's number.
    contexts: Mutex<HashMap<u32, Arc<Context>>>,
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
        OpenClBackendBuilder { library: None, allowed: Vec::new() }
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

    /// The context of a device, made if it is not there.
    fn context(&self, found: &Found, device: &Device) -> Result<Arc<Context>, BackendError> {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = contexts.get(&device.info.id.index()) {
            return Ok(Arc::clone(context));
        }
        let context = Arc::new(Context::new(&found.driver, device.handle)?);
        contexts.insert(device.info.id.index(), Arc::clone(&context));
        Ok(context)
    }
}

impl Found {
    fn device(&self, id: &DeviceId) -> Result<&Device, BackendError> {
        self.devices.iter().find(|device| device.info.id == *id).ok_or_else(|| {
            let there: Vec<_> =
                self.devices.iter().map(|device| device.info.id.to_string()).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            BackendError::NoDevice {
                message: format!("there is no device {id}; there are: {there}"),
            }
        })
    }

    fn by_target(&self, target: &Target) -> Result<&Device, BackendError> {
        self.devices.iter().find(|device| device.target == *target).ok_or_else(|| {
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

    /// The backend. Touches nothing yet.
    #[must_use]
    pub fn build(self) -> OpenClBackend {
        let Self { library, allowed } = self;
        OpenClBackend { library, allowed, found: Mutex::default(), contexts: Mutex::default() }
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
        Ok(self.found()?.by_target(target)?.toolchain())
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(OpenClModule, Option<Artifact>), BackendError> {
        let found = self.found()?;
        let device = found.device(device)?;
        let options = options::joined(spec.name(), spec.options(), &self.allowed)?;
        let program = compile::build(&self.context(&found, device)?, spec, &options)?;
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
        let context = self.context(&found, device)?;
        let program = compile::load(&context, artifact.binary(), &options)?;
        OpenClModule::new(program, spec.entry())
    }

    fn unload(&self, module: OpenClModule) -> Result<(), BackendError> {
        module.release()
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        let context = {
            let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
            if device.family() == Family::OPENCL { contexts.remove(&device.index()) } else { None }
        };
        // Where a module still uses it, the last one releases it.
        match context.and_then(Arc::into_inner) {
            Some(context) => context.release().map_err(BackendError::from),
            None => Ok(()),
        }
    }
}
