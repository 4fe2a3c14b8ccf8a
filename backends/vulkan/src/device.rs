//! The devices that are there, numbered, and what the key says of them.

use std::sync::Arc;

use ash::vk;
use grainstore::{DeviceId, Family};
use grainstore_runtime::parts::{Live, digest_of_names};
use grainstore_runtime::{BackendError, DeviceInfo, Target, Toolchain};

use crate::artifact::CacheOwner;
use crate::context::VulkanDevice;
use crate::driver::{Facts, Instance};
use crate::existing::ExistingDevice;
use crate::toolchain;

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
        toolchain::of(&self.versions)
    }

    /// What its artifacts are sealed for.
    pub(crate) fn seal(&self) -> String {
        format!("{} | {}", self.target.as_str(), self.toolchain().as_str())
    }

    /// A device that the user made.
    pub(crate) fn existing(
        given: &ExistingDevice,
        index: usize,
        live: &Live,
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
        Self {
            target: Target::new(format!(
                "{name}; {driver}; vendor {vendor:#06x}, device {device:#06x}; Vulkan {major}.{minor}; \
                 subgroups of {}; features {}",
                facts.subgroup_size,
                digest_of_names(features.iter().copied()),
            )),
            versions: toolchain::versions(facts, &driver),
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
