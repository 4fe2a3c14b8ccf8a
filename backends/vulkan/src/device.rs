//! The devices that are there, numbered, and what the key says of them.

use std::env;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use ash::vk;
use grainstore::{DeviceId, Family};
use grainstore_runtime::{BackendError, DeviceInfo, Target, Toolchain};

use crate::artifact::CacheOwner;
use crate::driver::{Facts, Instance};
use crate::existing::ExistingDevice;
use crate::logical::VulkanDevice;

/// How the variables begin that steer the compilers of the known drivers.
const PREFIXES: [&str; 19] = [
    "ACO_", "AMD_", "ANV_", "AMDVLK_", "FD_", "GALLIUM_", "GALLIVM_", "INTEL_", "IR3_", "LP_",
    "MESA_", "MVK_", "NAK_", "NIR_", "NVK_", "PAN_", "RADV_", "TU_", "__GL_",
];

/// Those of them that have nothing to do with the code.
const HARMLESS: [&str; 13] = [
    "GALLIUM_HUD",
    "GALLIUM_LOG",
    "INTEL_MEASURE",
    "LP_NUM_THREADS",
    "MESA_DISK_CACHE",
    "MESA_GLSL_CACHE",
    "MESA_LOADER",
    "MESA_LOG",
    "MESA_SHADER_CACHE",
    "MESA_VK_WSI",
    "MVK_CONFIG_LOG",
    "__GL_SHADER_DISK_CACHE",
    "__GL_SYNC",
];

/// A device that was found, or given.
pub(crate) struct Device {
    pub(crate) info: DeviceInfo,
    pub(crate) target: Target,
    pub(crate) owner: CacheOwner,
    pub(crate) place: Place,
    /// Without the variables, which may change.
    versions: String,
}

/// Where the native device comes from.
pub(crate) enum Place {
    /// To be made.
    Own(Box<Own>),
    /// Made by the user.
    Existing(Arc<VulkanDevice>),
}

/// What a device of our own is made from.
pub(crate) struct Own {
    pub(crate) instance: Arc<Instance>,
    pub(crate) physical: vk::PhysicalDevice,
    pub(crate) queue_family: u32,
    pub(crate) version: u32,
    pub(crate) limits: vk::PhysicalDeviceLimits,
    /// The features to enable.
    pub(crate) features: Vec<&'static str>,
    /// Those, and what subgroups can do.
    pub(crate) abilities: Vec<&'static str>,
}

impl Device {
    /// Who compiles for it, with the variables as they are now.
    pub(crate) fn toolchain(&self) -> Toolchain {
        let mut text = self.versions.clone();
        for (name, value) in variables(env::vars_os().map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })) {
            text.push_str(&format!("; {name}={value}"));
        }
        Toolchain::new(text)
    }

    /// What its artifacts are sealed for.
    pub(crate) fn seal(&self) -> String {
        format!("{} | {}", self.target.as_str(), self.toolchain().as_str())
    }

    /// A device that the user made.
    pub(crate) fn existing(
        given: &ExistingDevice,
        index: usize,
        live: &Arc<AtomicUsize>,
    ) -> Result<Self, BackendError> {
        let facts = given.instance.facts(given.physical).ok_or_else(|| {
            BackendError::unsupported(
                format!("the device given as number {index} is older than Vulkan 1.1"),
                "give one that is not",
            )
        })?;
        let version = given.instance.version_with(&facts);
        let features: Vec<_> = given.features.iter().map(String::as_str).collect();
        let place = Place::Existing(Arc::new(VulkanDevice::existing(given, facts.limits, live)));
        Ok(Self::new(&facts, version, &features, index, place))
    }

    fn new(facts: &Facts, version: u32, features: &[&str], index: usize, place: Place) -> Self {
        let Facts { name, vendor, device, driver_name, driver_info, .. } = facts;
        let driver = format!("{driver_name} {driver_info}").trim().to_owned();
        let driver =
            if driver.is_empty() { format!("version {:#x}", facts.driver_version) } else { driver };
        let (major, minor) = (vk::api_version_major(version), vk::api_version_minor(version));
        let mut versions = format!(
            "{driver}; driver {:#x} of id {}, {}; Vulkan {}; cache {}",
            facts.driver_version,
            facts.driver_id,
            hex(&facts.driver_uuid),
            shown(facts.version),
            hex(&facts.cache_uuid),
        );
        // A graphics card's UUID is its own, and equal cards share their kernels. The processor is
        // the same within a machine, and what it can do is told apart by nothing else.
        if facts.kind == vk::PhysicalDeviceType::CPU {
            versions.push_str(&format!("; device {}", hex(&facts.device_uuid)));
        }
        Self {
            target: Target::new(format!(
                "{name}; {driver}; vendor {vendor:#06x}, device {device:#06x}; Vulkan {major}.{minor}; \
                 subgroups of {}; features {}",
                facts.subgroup_size,
                digest(features),
            )),
            versions,
            owner: CacheOwner { vendor: *vendor, device: *device, uuid: facts.cache_uuid },
            info: DeviceInfo {
                id: DeviceId::new(Family::VULKAN, index as u32),
                name: name.clone(),
                driver,
            },
            place,
        }
    }
}

/// All devices that can be used.
pub(crate) fn find(instance: &Arc<Instance>) -> Result<Vec<Device>, BackendError> {
    let mut all = Vec::new();
    for physical in instance.devices()? {
        let Some((facts, family)) = instance.facts(physical).zip(instance.queue_family(physical))
        else {
            continue;
        };
        all.push((facts, physical, family));
    }
    // Loaders list drivers in the order of a folder, which is any order.
    all.sort_by(|(a, ..), (b, ..)| order(a).cmp(&order(b)));
    let devices = all.into_iter().enumerate().map(|(index, (facts, physical, queue_family))| {
        let version = instance.version_with(&facts);
        let features = instance.features(physical, version);
        let abilities = [&features[..], &facts.subgroups].concat();
        let own = Own {
            instance: Arc::clone(instance),
            physical,
            queue_family,
            version,
            limits: facts.limits,
            features: features.clone(),
            abilities,
        };
        Device::new(&facts, version, &features, index, Place::Own(Box::new(own)))
    });
    Ok(devices.collect())
}

/// Cards first, the processor last; equal ones by what the driver tells them apart with.
fn order(facts: &Facts) -> impl Ord + '_ {
    let rank = match facts.kind {
        vk::PhysicalDeviceType::DISCRETE_GPU => 0,
        vk::PhysicalDeviceType::INTEGRATED_GPU => 1,
        vk::PhysicalDeviceType::VIRTUAL_GPU => 2,
        vk::PhysicalDeviceType::CPU => 3,
        _ => 4,
    };
    (rank, &facts.driver_name, &facts.name, facts.device_uuid, facts.cache_uuid)
}

fn shown(version: u32) -> String {
    let (major, minor) = (vk::api_version_major(version), vk::api_version_minor(version));
    format!("{major}.{minor}.{}", vk::api_version_patch(version))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The features are dozens of names whose order means nothing; a digest says whether they differ.
fn digest(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup();
    let mut hex = blake3::hash(names.join(" ").as_bytes()).to_string();
    hex.truncate(16);
    hex
}

/// Those variables that change what a driver's compiler makes, sorted.
fn variables(all: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let starts = |name: &str, list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
    let mut relevant: Vec<_> =
        all.filter(|(name, _)| starts(name, &PREFIXES) && !starts(name, &HARMLESS)).collect();
    relevant.sort();
    relevant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_features_means_nothing() {
        assert_eq!(digest(&["a", "b"]), digest(&["b", "a", "b"]));
        assert_ne!(digest(&["a", "b"]), digest(&["ab"]));
    }

    #[test]
    fn only_variables_that_change_the_code_count() {
        let names = [
            "RADV_DEBUG",
            "MESA_SHADER_CACHE_DIR",
            "LP_NATIVE_VECTOR_WIDTH",
            "HOME",
            "LP_NUM_THREADS",
        ];
        let found = variables(names.iter().map(|name| ((*name).to_owned(), "1".to_owned())));
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["LP_NATIVE_VECTOR_WIDTH", "RADV_DEBUG"]);
    }
}
