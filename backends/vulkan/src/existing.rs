//! A device that the user's application made, and goes on to own.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

use ash::vk;

use crate::driver::Instance;

/// A device of the user's own, for [`VulkanBackendBuilder::device`](crate::VulkanBackendBuilder).
///
/// The backend makes shader modules, layouts, pipeline caches and pipelines on it. It submits
/// nothing, and destroys neither device nor instance.
#[derive(Clone)]
pub struct ExistingDevice {
    pub(crate) instance: Arc<Instance>,
    pub(crate) physical: vk::PhysicalDevice,
    pub(crate) device: ash::Device,
    pub(crate) queue_family: u32,
    pub(crate) queue: vk::Queue,
    pub(crate) features: Vec<String>,
    pub(crate) queue_lock: Arc<Mutex<()>>,
    pub(crate) keep_alive: Option<Arc<dyn Any + Send + Sync>>,
}

impl ExistingDevice {
    /// A device that was made with the crate `ash`.
    ///
    /// # Safety
    /// - The instance was made for Vulkan 1.1 or newer, the device is of this physical device, and
    ///   the queue is the device's and of this family.
    /// - Instance and device live until the backend and every module and every
    ///   [`VulkanDevice`](crate::VulkanDevice) that came from it are dropped; [`keep_alive`] is one
    ///   way to see to that.
    /// - Until then, nobody frees or resets what the modules hand out.
    ///
    /// [`keep_alive`]: Self::keep_alive
    #[must_use]
    pub unsafe fn new(
        instance: ash::Instance,
        physical: vk::PhysicalDevice,
        device: ash::Device,
        queue_family: u32,
        queue: vk::Queue,
    ) -> Self {
        Self {
            // SAFETY: the caller's word.
            instance: unsafe { Instance::borrowed(instance) },
            physical,
            device,
            queue_family,
            queue,
            features: Vec::new(),
            queue_lock: Arc::default(),
            keep_alive: None,
        }
    }

    /// The same from native handles, however they were made: by another crate, or in C++. See
    /// [`ash::vk::Handle::from_raw`] for handles that are plain numbers.
    ///
    /// # Safety
    /// As for [`new`](Self::new); and `get_instance_proc_addr` is that of the loader that made the
    /// instance.
    #[must_use]
    pub unsafe fn from_raw(
        get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
        instance: vk::Instance,
        physical: vk::PhysicalDevice,
        device: vk::Device,
        queue_family: u32,
        queue: vk::Queue,
    ) -> Self {
        let loader = ash::StaticFn { get_instance_proc_addr };
        // SAFETY: the handles live, and are the loader's, by the caller's word.
        unsafe {
            let instance = ash::Instance::load(&loader, instance);
            let device = ash::Device::load(instance.fp_v1_0(), device);
            Self::new(instance, physical, device, queue_family, queue)
        }
    }

    /// The features and extensions that the device was made with, as far as they change code:
    /// `robustBufferAccess`, `shaderFloat16`, `VK_KHR_cooperative_matrix`. Nothing can ask a device
    /// for them. They go into the key, as one text each, and their order means nothing.
    #[must_use]
    pub fn features<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.features.extend(names.into_iter().map(Into::into));
        self
    }

    /// The lock that the application takes around its own use of the queue, so that whoever has the
    /// queue from a module ([`VulkanDevice::queue`](crate::VulkanDevice::queue)) takes the same.
    #[must_use]
    pub fn queue_lock(mut self, lock: Arc<Mutex<()>>) -> Self {
        self.queue_lock = lock;
        self
    }

    /// Something that destroys device and instance when it is dropped; it is kept until nothing of
    /// this backend uses them any more.
    #[must_use]
    pub fn keep_alive(mut self, owner: impl Any + Send + Sync) -> Self {
        self.keep_alive = Some(Arc::new(owner));
        self
    }
}

impl fmt::Debug for ExistingDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExistingDevice")
            .field("device", &self.device.handle())
            .field("queue_family", &self.queue_family)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}
