//! The [`Backend`] itself: ties the library, devices and modules together.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};

use crate::artifact;
use crate::compile::{self, Compiled};
use crate::device::{self, Device, Place};
use crate::driver::Instance;
use crate::existing::ExistingDevice;
use crate::library;
use crate::logical::VulkanDevice;
use crate::module::VulkanModule;
use crate::pipeline::{Made, Pipeline};

/// The languages that this was built for, the one that is not translated first.
const LANGUAGES: &[Language] = &[
    Language::SpirV,
    #[cfg(feature = "wgsl")]
    Language::Wgsl,
    #[cfg(feature = "glsl")]
    Language::Glsl,
];

/// All Vulkan devices of this machine, or those of the user's own, as a backend.
pub struct VulkanBackend {
    library: Option<PathBuf>,
    /// The user's own; none means to look for them.
    given: Mutex<Vec<ExistingDevice>>,
    /// Looked for until it is found: what is installed later counts too.
    found: Mutex<Option<Arc<Vec<Device>>>>,
    /// Those of its own that were made, by the device's number.
    devices: Mutex<HashMap<u32, Arc<VulkanDevice>>>,
    live: Arc<AtomicUsize>,
}

impl VulkanBackend {
    /// With the system's library and devices of its own. Touches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// With settings of one's own.
    pub fn builder() -> VulkanBackendBuilder {
        VulkanBackendBuilder { library: None, given: Vec::new() }
    }

    /// How many native handles there are that this backend made and did not destroy yet: devices of
    /// its own, shader modules, layouts, pipelines. The instance, which lives as long as the
    /// backend, is not among them.
    #[must_use]
    pub fn live_handles(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Puts a new device in the place of one that was given to the builder, such as one made after
    /// the old was lost. First tell the runtime that the old one is gone (`device_lost` or
    /// `destroy_device`); what was built on it stays with it.
    ///
    /// # Errors
    /// [`BackendError::NoDevice`] where the builder was given no device of that number.
    pub fn replace_device(&self, id: &DeviceId, new: ExistingDevice) -> Result<(), BackendError> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let count = given.len();
        let place = usize::try_from(id.index()).ok().filter(|_| id.family() == Family::VULKAN);
        let Some(place) = place.and_then(|index| given.get_mut(index)) else {
            return Err(BackendError::NoDevice {
                message: format!("{id} is not among the {count} devices given to the builder"),
            });
        };
        *place = new;
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    fn found(&self) -> Result<Arc<Vec<Device>>, BackendError> {
        // In this order everywhere: what is given, then what is found.
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let mut slot = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*slot {
            return Ok(Arc::clone(found));
        }
        let devices = if given.is_empty() {
            device::find(&Instance::new(&library::load(self.library.as_ref())?)?)?
        } else {
            let all = given.iter().enumerate();
            all.map(|(index, given)| Device::existing(given, index, &self.live))
                .collect::<Result<_, _>>()?
        };
        let found = Arc::new(devices);
        *slot = Some(Arc::clone(&found));
        Ok(found)
    }

    /// The logical device, made if it is not there.
    fn logical(&self, device: &Device) -> Result<Arc<VulkanDevice>, BackendError> {
        let own = match &device.place {
            Place::Own(own) => own,
            Place::Existing(logical) => return Ok(Arc::clone(logical)),
        };
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(logical) = devices.get(&device.info.id.index()) {
            return Ok(Arc::clone(logical));
        }
        let logical = Arc::new(VulkanDevice::make(own, &self.live)?);
        devices.insert(device.info.id.index(), Arc::clone(&logical));
        Ok(logical)
    }

    fn make(
        &self,
        device: &Device,
        spec: &KernelSpec,
        compiled: &Compiled,
        cached: &[u8],
    ) -> Result<(VulkanModule, Option<Vec<u8>>), BackendError> {
        let logical = self.logical(device)?;
        let Made { pipeline, cache_data } =
            Pipeline::make(&logical, spec.name(), compiled, cached)?;
        Ok((VulkanModule::new(pipeline, compiled.interface.clone()), cache_data))
    }
}

fn by_id<'a>(devices: &'a [Device], id: &DeviceId) -> Result<&'a Device, BackendError> {
    devices.iter().find(|device| device.info.id == *id).ok_or_else(|| {
        let there: Vec<_> = devices.iter().map(|device| device.info.id.to_string()).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        BackendError::NoDevice { message: format!("there is no device {id}; there are: {there}") }
    })
}

impl Default for VulkanBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for VulkanBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanBackend")
            .field("library", &self.library)
            .field("live_handles", &self.live_handles())
            .finish_non_exhaustive()
    }
}

/// Collects the settings of a [`VulkanBackend`].
#[derive(Debug)]
#[must_use]
pub struct VulkanBackendBuilder {
    library: Option<PathBuf>,
    given: Vec<ExistingDevice>,
}

impl VulkanBackendBuilder {
    /// Vulkan's loader library, or a driver's own. Comes before `GRAINSTORE_VULKAN_LIBRARY` and the
    /// system's.
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.library = Some(path.into());
        self
    }

    /// A device that your application has made already. With one or more of them, these are all the
    /// devices, numbered as they are given, and no library is looked for.
    pub fn device(mut self, device: ExistingDevice) -> Self {
        self.given.push(device);
        self
    }

    /// The backend. Touches nothing yet.
    #[must_use]
    pub fn build(self) -> VulkanBackend {
        let Self { library, given } = self;
        VulkanBackend {
            library,
            given: Mutex::new(given),
            found: Mutex::default(),
            devices: Mutex::default(),
            live: Arc::default(),
        }
    }
}

impl Backend for VulkanBackend {
    type Module = VulkanModule;

    fn name(&self) -> &str {
        "vulkan"
    }

    fn family(&self) -> Family {
        Family::VULKAN
    }

    fn languages(&self) -> &[Language] {
        LANGUAGES
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        Ok(self.found()?.iter().map(|device| device.info.clone()).collect())
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        Ok(by_id(&self.found()?, device)?.target.clone())
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        let found = self.found()?;
        let device = found.iter().find(|device| device.target == *target);
        device.map(Device::toolchain).ok_or_else(|| {
            let message = format!("there is no device for the target `{}`", target.as_str());
            BackendError::NoDevice { message }
        })
    }

    fn toolchain_for(&self, target: &Target, spec: &KernelSpec) -> Result<Toolchain, BackendError> {
        let toolchain = self.toolchain(target)?;
        Ok(match compile::translator(spec) {
            Some(translator) => Toolchain::new(format!("{translator}; {}", toolchain.as_str())),
            None => toolchain,
        })
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(VulkanModule, Option<Artifact>), BackendError> {
        let found = self.found()?;
        let device = by_id(&found, device)?;
        let compiled = compile::compile(spec)?;
        let (module, cache) = self.make(device, spec, &compiled, &[])?;
        Ok((module, artifact::pack(&compiled, cache, &seal(device, spec))))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<VulkanModule, BackendError> {
        let found = self.found()?;
        let device = by_id(&found, device)?;
        let seal = seal(device, spec);
        let (compiled, cache) = artifact::unpack(artifact, spec, &device.owner, &seal)?;
        self.make(device, spec, &compiled, cache).map(|(module, _)| module)
    }

    fn unload(&self, module: VulkanModule) -> Result<(), BackendError> {
        // Vulkan's calls that destroy something say nothing.
        drop(module);
        Ok(())
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        let logical = {
            let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
            if device.family() == Family::VULKAN { devices.remove(&device.index()) } else { None }
        };
        // Where a module or the user still has it, the last one destroys it.
        drop(logical);
        Ok(())
    }

    fn compile_for(&self, _: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        Err(BackendError::unsupported(
            format!(
                "kernel `{}` cannot be compiled for a Vulkan device that is not here",
                spec.name()
            ),
            "its own driver makes the code: run on a machine that has it. To check a source with no \
             device, use `grainstore_vulkan::to_spirv`",
        ))
    }
}

/// What an artifact of this kernel is sealed for.
fn seal(device: &Device, spec: &KernelSpec) -> String {
    match compile::translator(spec) {
        Some(translator) => format!("{translator}; {}", device.seal()),
        None => device.seal(),
    }
}
