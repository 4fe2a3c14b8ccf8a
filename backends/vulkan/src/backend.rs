//! The [`Backend`] itself: ties the library, devices and modules together.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_runtime::parts::{Live, Sought};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};

use crate::artifact;
use crate::builder::{Settings, VulkanBackendBuilder};
use crate::compile::{self, Compiled};
use crate::context::VulkanDevice;
use crate::device::{Device, Place};
use crate::existing::ExistingDevice;
use crate::found::Found;
use crate::module::VulkanModule;
use crate::pipeline::{Made, Pipeline};
use crate::toolchain::with_translator;

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
    settings: Settings,
    /// The user's own; none means to look for them.
    given: Mutex<Vec<ExistingDevice>>,
    found: Sought<Found>,
    /// Those of its own that were made, by the device's number.
    devices: Mutex<HashMap<u32, Arc<VulkanDevice>>>,
    live: Live,
}

impl VulkanBackend {
    /// With the system's library and devices of its own. Touches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// With settings of one's own.
    pub fn builder() -> VulkanBackendBuilder {
        VulkanBackendBuilder::default()
    }

    pub(crate) fn with(settings: Settings, given: Vec<ExistingDevice>) -> Self {
        Self {
            settings,
            given: Mutex::new(given),
            found: Sought::new(),
            devices: Mutex::default(),
            live: Live::default(),
        }
    }

    /// How many native handles there are that this backend made and did not destroy yet: devices of
    /// its own, shader modules, layouts, pipelines. The instance, which lives as long as the
    /// backend, is not among them.
    #[must_use]
    pub fn live_handles(&self) -> usize {
        self.live.count()
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
        // Who looks for devices holds what is found and then wants what is given.
        drop(given);
        self.found.forget();
        Ok(())
    }

    fn found(&self) -> Result<Arc<Found>, BackendError> {
        self.found.get_or_find(|| {
            let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
            if given.is_empty() {
                return Found::all(&self.settings);
            }
            Found::of_application(&given, &self.live)
        })
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

impl Default for VulkanBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for VulkanBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanBackend")
            .field("settings", &self.settings)
            .field("live_handles", &self.live_handles())
            .finish_non_exhaustive()
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
        Ok(self.found()?.devices.iter().map(|device| device.info.clone()).collect())
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        Ok(self.found()?.device(device)?.target.clone())
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        self.found()?.toolchain(target)
    }

    fn toolchain_for(&self, target: &Target, spec: &KernelSpec) -> Result<Toolchain, BackendError> {
        let toolchain = self.toolchain(target)?;
        Ok(Toolchain::new(with_translator(spec, toolchain.as_str())))
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(VulkanModule, Option<Artifact>), BackendError> {
        let found = self.found()?;
        let device = found.device(device)?;
        let compiled = compile::compile(spec)?;
        let (module, cache) = self.make(device, spec, &compiled, &[])?;
        Ok((module, artifact::pack(&compiled, cache, &with_translator(spec, &device.seal()))))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<VulkanModule, BackendError> {
        let found = self.found()?;
        let device = found.device(device)?;
        let seal = with_translator(spec, &device.seal());
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
