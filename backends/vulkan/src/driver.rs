//! Vulkan's calls about the instance and what it says of its devices, none of them unsafe to use
//! within this crate.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::process;
use std::sync::Arc;

use ash::{Entry, vk};
use grainstore_runtime::BackendError;

use crate::features::{self, Structs};
use crate::status::failed;

/// The newest version whose functions and structs this crate knows.
const NEWEST: u32 = vk::API_VERSION_1_3;

/// The oldest that it takes.
pub(crate) const OLDEST: u32 = vk::API_VERSION_1_1;

/// An instance, and the functions that come with it.
pub(crate) struct Instance {
    raw: ash::Instance,
    /// The version that it was made for.
    version: u32,
    /// The process that made it; none where that is somebody else's business.
    owner: Option<u32>,
}

/// All that is asked of a device, once.
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) kind: vk::PhysicalDeviceType,
    pub(crate) vendor: u32,
    pub(crate) device: u32,
    pub(crate) driver_name: String,
    pub(crate) driver_info: String,
    pub(crate) driver_id: i32,
    pub(crate) driver_version: u32,
    /// As the device says it, which may be newer than the instance.
    pub(crate) version: u32,
    pub(crate) cache_uuid: [u8; vk::UUID_SIZE],
    pub(crate) device_uuid: [u8; vk::UUID_SIZE],
    pub(crate) driver_uuid: [u8; vk::UUID_SIZE],
    pub(crate) limits: vk::PhysicalDeviceLimits,
    pub(crate) subgroup_size: u32,
    /// What subgroups can do.
    pub(crate) subgroups: Vec<&'static str>,
}

impl Instance {
    /// A new one, of the newest version that library and crate both know.
    pub(crate) fn new(entry: &Entry) -> Result<Arc<Self>, BackendError> {
        // SAFETY: the library is loaded for good.
        let version = unsafe { entry.try_enumerate_instance_version() }
            .map_err(failed("vkEnumerateInstanceVersion"))?
            .unwrap_or(vk::API_VERSION_1_0);
        if version < OLDEST {
            return Err(BackendError::missing(
                "a Vulkan loader of version 1.1 or newer",
                "update it (on Debian `libvulkan1`)",
            ));
        }
        let version = version.min(NEWEST);
        // Drivers that are Vulkan only in part, such as MoltenVK, show themselves on request alone.
        let portable = ash::khr::portability_enumeration::NAME;
        // SAFETY: no layer is named.
        let there = unsafe { entry.enumerate_instance_extension_properties(None) }
            .map_err(failed("vkEnumerateInstanceExtensionProperties"))?;
        let portable: Vec<*const c_char> = there
            .iter()
            .filter(|it| it.extension_name_as_c_str() == Ok(portable))
            .map(|_| portable.as_ptr())
            .take(1)
            .collect();
        let application =
            vk::ApplicationInfo::default().engine_name(c"grainstore").api_version(version);
        let flags = if portable.is_empty() {
            vk::InstanceCreateFlags::empty()
        } else {
            vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR
        };
        let create = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_extension_names(&portable);
        // SAFETY: what the info points to lives until the call returns, and the library stays.
        let raw =
            unsafe { entry.create_instance(&create, None) }.map_err(failed("vkCreateInstance"))?;
        Ok(Arc::new(Self { raw, version, owner: Some(process::id()) }))
    }

    /// Somebody else's, which this crate will not destroy.
    ///
    /// # Safety
    /// It was made for Vulkan 1.1 or newer, and lives as long as this.
    pub(crate) unsafe fn borrowed(raw: ash::Instance) -> Arc<Self> {
        // What it was made for cannot be asked; devices tell their own version, and nothing newer
        // than 1.1 is called through it.
        Arc::new(Self { raw, version: NEWEST, owner: None })
    }

    /// The functions.
    pub(crate) fn raw(&self) -> &ash::Instance {
        &self.raw
    }

    /// The version that can be used with a device.
    pub(crate) fn version_with(&self, facts: &Facts) -> u32 {
        self.version.min(facts.version)
    }

    /// All devices.
    pub(crate) fn devices(&self) -> Result<Vec<vk::PhysicalDevice>, BackendError> {
        // SAFETY: the instance lives.
        unsafe { self.raw.enumerate_physical_devices() }
            .map_err(failed("vkEnumeratePhysicalDevices"))
    }

    /// What a device says of itself; none where it is older than [`OLDEST`].
    pub(crate) fn facts(&self, device: vk::PhysicalDevice) -> Option<Facts> {
        // SAFETY: the device is this instance's, here and below.
        let version = unsafe { self.raw.get_physical_device_properties(device) }.api_version;
        if version < OLDEST {
            return None;
        }
        let mut ids = vk::PhysicalDeviceIDProperties::default();
        let mut subgroups = vk::PhysicalDeviceSubgroupProperties::default();
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut all =
            vk::PhysicalDeviceProperties2::default().push_next(&mut ids).push_next(&mut subgroups);
        if version >= vk::API_VERSION_1_2 || self.has(device, ash::khr::driver_properties::NAME) {
            all = all.push_next(&mut driver);
        }
        // SAFETY: the structs in the chain are of the device's version.
        unsafe { self.raw.get_physical_device_properties2(device, &mut all) };
        let properties = all.properties;
        let text = |text: Result<&CStr, _>| {
            text.map_or(String::new(), |text| text.to_string_lossy().trim().to_owned())
        };
        Some(Facts {
            name: text(properties.device_name_as_c_str()),
            kind: properties.device_type,
            vendor: properties.vendor_id,
            device: properties.device_id,
            driver_name: text(driver.driver_name_as_c_str()),
            driver_info: text(driver.driver_info_as_c_str()),
            driver_id: driver.driver_id.as_raw(),
            driver_version: properties.driver_version,
            version: properties.api_version,
            cache_uuid: properties.pipeline_cache_uuid,
            device_uuid: ids.device_uuid,
            driver_uuid: ids.driver_uuid,
            limits: properties.limits,
            subgroup_size: subgroups.subgroup_size,
            subgroups: features::subgroup_names(&subgroups),
        })
    }

    /// The family of queues that takes compute work: the first one that does.
    pub(crate) fn queue_family(&self, device: vk::PhysicalDevice) -> Option<u32> {
        // SAFETY: the device is this instance's.
        let families = unsafe { self.raw.get_physical_device_queue_family_properties(device) };
        let takes = |family: &vk::QueueFamilyProperties| {
            family.queue_count > 0 && family.queue_flags.contains(vk::QueueFlags::COMPUTE)
        };
        families.iter().position(takes).and_then(|index| u32::try_from(index).ok())
    }

    /// Those of the features of [`features`] that a device of that version has.
    pub(crate) fn features(&self, device: vk::PhysicalDevice, version: u32) -> Vec<&'static str> {
        let mut structs = Structs::default();
        let mut all = vk::PhysicalDeviceFeatures2::default();
        if version >= vk::API_VERSION_1_2 {
            all = all.push_next(&mut structs.v11).push_next(&mut structs.v12);
        }
        if version >= vk::API_VERSION_1_3 {
            all = all.push_next(&mut structs.v13);
        }
        // SAFETY: the device is this instance's, and the structs are of the device's version.
        unsafe { self.raw.get_physical_device_features2(device, &mut all) };
        structs.core = all.features;
        features::names(&structs)
    }

    /// Says whether a device has an extension.
    pub(crate) fn has(&self, device: vk::PhysicalDevice, extension: &CStr) -> bool {
        // SAFETY: the device is this instance's.
        let there = unsafe { self.raw.enumerate_device_extension_properties(device) };
        there.unwrap_or_default().iter().any(|it| it.extension_name_as_c_str() == Ok(extension))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // In a forked child it is the parent's.
        if self.owner == Some(process::id()) {
            // SAFETY: devices keep it alive, so none is left.
            unsafe { self.raw.destroy_instance(None) };
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.raw.handle(), f)
    }
}
