//! What a device's modules live in: the logical device, its queue, and the lock around that.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ash::{khr, vk};
use grainstore_runtime::BackendError;
use grainstore_runtime::parts::Live;

use crate::device::Own;
use crate::driver::Instance;
use crate::existing::ExistingDevice;
use crate::features;
use crate::status::failed;

/// A logical device with one queue for compute work. Modules keep it alive, and so may you: keep the
/// [`Arc`] as long as you have buffers, pools or work on it.
pub struct VulkanDevice {
    instance: Arc<Instance>,
    physical: vk::PhysicalDevice,
    raw: ash::Device,
    queue_family: u32,
    queue: vk::Queue,
    queue_lock: Arc<Mutex<()>>,
    limits: vk::PhysicalDeviceLimits,
    /// What of Vulkan can be used; not known for a device of the user's, whose instance may have been
    /// made for less than the device has.
    version: Option<u32>,
    /// What kernels may need; not known for a device of the user's.
    abilities: Option<Vec<&'static str>>,
    live: Live,
    /// Whether this destroys it in the end.
    owned: bool,
    /// The process that it belongs to.
    process: u32,
    // The last field, so the last to be dropped: what the handles of a user's device belong to.
    _keep_alive: Option<Arc<dyn Any + Send + Sync>>,
}

impl VulkanDevice {
    /// A new device. `live` counts what is made.
    pub(crate) fn make(own: &Own, live: &Live) -> Result<Self, BackendError> {
        let priorities = [1.0];
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(own.queue_family)
            .queue_priorities(&priorities)];
        // A driver that is Vulkan only in part wants that acknowledged.
        let subset = khr::portability_subset::NAME;
        let extensions =
            if own.instance.has(own.physical, subset) { vec![subset.as_ptr()] } else { Vec::new() };
        let mut structs = features::structs(&own.features);
        let mut enabled = vk::PhysicalDeviceFeatures2::default().features(structs.core);
        if own.version >= vk::API_VERSION_1_2 {
            enabled = enabled.push_next(&mut structs.v11).push_next(&mut structs.v12);
        }
        if own.version >= vk::API_VERSION_1_3 {
            enabled = enabled.push_next(&mut structs.v13);
        }
        let create = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .push_next(&mut enabled);
        // SAFETY: the physical device is the instance's, has this family, these features and these
        // extensions, and what the info points to lives until the call returns.
        let raw = unsafe { own.instance.raw().create_device(own.physical, &create, None) }
            .map_err(failed("vkCreateDevice"))?;
        live.add(1);
        // SAFETY: the device was made with one queue of this family.
        let queue = unsafe { raw.get_device_queue(own.queue_family, 0) };
        Ok(Self {
            instance: Arc::clone(&own.instance),
            physical: own.physical,
            raw,
            queue_family: own.queue_family,
            queue,
            queue_lock: Arc::default(),
            limits: own.limits,
            version: Some(own.version),
            abilities: Some(own.abilities.clone()),
            live: live.clone(),
            owned: true,
            process: process::id(),
            _keep_alive: None,
        })
    }

    /// The user's device.
    pub(crate) fn existing(
        given: &ExistingDevice,
        limits: vk::PhysicalDeviceLimits,
        live: &Live,
    ) -> Self {
        Self {
            instance: Arc::clone(&given.instance),
            physical: given.physical,
            raw: given.device.clone(),
            queue_family: given.queue_family,
            queue: given.queue,
            queue_lock: Arc::clone(&given.queue_lock),
            limits,
            version: None,
            abilities: None,
            live: live.clone(),
            owned: false,
            process: process::id(),
            _keep_alive: given.keep_alive.clone(),
        }
    }

    /// The instance, with its functions.
    #[must_use]
    pub fn instance(&self) -> &ash::Instance {
        self.instance.raw()
    }

    /// The physical device.
    #[must_use]
    pub fn physical_device(&self) -> vk::PhysicalDevice {
        self.physical
    }

    /// The logical device, with its functions. It is good while this lives.
    #[must_use]
    pub fn device(&self) -> &ash::Device {
        &self.raw
    }

    /// The family of the queue, for command pools.
    #[must_use]
    pub fn queue_family(&self) -> u32 {
        self.queue_family
    }

    /// The queue, locked: Vulkan lets one thread at a time use it, and all modules of a device share
    /// it. Submit, and drop the guard before you wait for what you submitted.
    #[must_use]
    pub fn queue(&self) -> QueueGuard<'_> {
        let lock = self.queue_lock.lock().unwrap_or_else(PoisonError::into_inner);
        QueueGuard { queue: self.queue, _lock: lock }
    }

    /// The device's limits.
    pub fn limits(&self) -> &vk::PhysicalDeviceLimits {
        &self.limits
    }

    /// What kernels may need, where it is known.
    pub(crate) fn abilities(&self) -> Option<&[&'static str]> {
        self.abilities.as_deref()
    }

    /// Whether the driver can be asked where a pipeline's code came from.
    pub(crate) fn gives_feedback(&self) -> bool {
        self.version.is_some_and(|version| version >= vk::API_VERSION_1_3)
    }

    /// The newest minor version of SPIR-V that it takes, where that is known.
    pub(crate) fn spirv_version(&self) -> Option<u32> {
        self.version.map(|version| match vk::api_version_minor(version) {
            1 => 3,
            2 => 5,
            _ => 6,
        })
    }

    /// Counts native handles that were made, or given back.
    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// Whether native handles may be destroyed by this process: not in a forked child.
    pub(crate) fn may_destroy(&self) -> bool {
        self.process == process::id()
    }
}

impl Drop for VulkanDevice {
    fn drop(&mut self) {
        if !self.owned || !self.may_destroy() {
            return;
        }
        {
            let _queue = self.queue();
            // Work that was submitted would lose what it runs on. Where the device is lost, this
            // says so, and there is nothing to wait for.
            // SAFETY: the device lives, and its only queue is locked.
            let _ = unsafe { self.raw.device_wait_idle() };
        }
        // SAFETY: modules keep this alive, so none of them is left; whoever made things of their
        // own on the device keeps it too, as the documentation says.
        unsafe { self.raw.destroy_device(None) };
        self.live.remove(1);
    }
}

impl fmt::Debug for VulkanDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanDevice")
            .field("device", &self.raw.handle())
            .field("queue_family", &self.queue_family)
            .finish_non_exhaustive()
    }
}

/// The queue of a [`VulkanDevice`], for one thread, while this lives.
#[derive(Debug)]
pub struct QueueGuard<'a> {
    queue: vk::Queue,
    _lock: MutexGuard<'a, ()>,
}

impl Deref for QueueGuard<'_> {
    type Target = vk::Queue;

    fn deref(&self) -> &vk::Queue {
        &self.queue
    }
}
