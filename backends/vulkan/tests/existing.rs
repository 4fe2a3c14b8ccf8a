//! A device that the application made: used, and left alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use common::launch::check_saxpy;
use common::{on_vulkan, saxpy};
use grainstore::{DeviceId, Family};
use grainstore_runtime::{Backend, BackendError};
use grainstore_vulkan::ash::{self, Entry, vk};
use grainstore_vulkan::{ExistingDevice, VulkanBackend};

const DEVICE: DeviceId = DeviceId::new(Family::VULKAN, 0);

/// What an application has: it goes when this is dropped.
struct Application {
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    device: ash::Device,
    queue: vk::Queue,
    gone: Arc<AtomicBool>,
    _entry: Entry,
}

impl Application {
    fn new(gone: &Arc<AtomicBool>) -> Self {
        // SAFETY: what is made here is used as Vulkan says; the tests' drivers have a family 0 that
        // computes.
        unsafe {
            let entry = Entry::load().unwrap();
            let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
            let create = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&create, None).unwrap();
            let physical = instance.enumerate_physical_devices().unwrap()[0];
            let priorities = [1.0];
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
            let create = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
            let device = instance.create_device(physical, &create, None).unwrap();
            let queue = device.get_device_queue(0, 0);
            let gone = Arc::clone(gone);
            Self { instance, physical, device, queue, gone, _entry: entry }
        }
    }

    /// By ash's own objects.
    fn given(self) -> ExistingDevice {
        // SAFETY: all of it lives until the device is not needed any more.
        let given = unsafe {
            ExistingDevice::new(
                self.instance.clone(),
                self.physical,
                self.device.clone(),
                0,
                self.queue,
            )
        };
        given.keep_alive(self)
    }

    /// By native handles.
    fn given_raw(self) -> ExistingDevice {
        // SAFETY: as above.
        let given = unsafe {
            ExistingDevice::from_raw(
                self._entry.static_fn().get_instance_proc_addr,
                self.instance.handle(),
                self.physical,
                self.device.handle(),
                0,
                self.queue,
            )
        };
        given.keep_alive(self)
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        // SAFETY: nobody uses them any more.
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
        self.gone.store(true, Ordering::SeqCst);
    }
}

#[test]
fn the_users_device_is_used_and_kept() {
    on_vulkan("the_users_device_is_used_and_kept", |_, _| {
        for raw in [false, true] {
            let gone = Arc::new(AtomicBool::new(false));
            let application = Application::new(&gone);
            let handle = application.device.handle();
            let given = if raw { application.given_raw() } else { application.given() };
            let lock = Arc::new(Mutex::new(()));
            let given = given.queue_lock(Arc::clone(&lock));
            let vulkan = VulkanBackend::builder().device(given).build();

            assert_eq!(vulkan.devices().unwrap().len(), 1);
            let (module, artifact) = vulkan.build(&DEVICE, &saxpy()).unwrap();
            assert_eq!(module.device().device().handle(), handle);
            let queue = module.device().queue();
            assert!(lock.try_lock().is_err(), "the queue's lock is the user's own");
            drop(queue);
            check_saxpy(&module);
            // The device is not among them.
            assert_eq!(vulkan.live_handles(), 4);
            let loaded = vulkan.load(&DEVICE, &saxpy(), &artifact.unwrap()).unwrap();
            check_saxpy(&loaded);
            vulkan.unload(loaded).unwrap();

            vulkan.destroy_device(&DEVICE).unwrap();
            check_saxpy(&module);
            drop(vulkan);
            assert!(!gone.load(Ordering::SeqCst), "the module needs it");
            drop(module);
            assert!(gone.load(Ordering::SeqCst));
        }
    });
}

#[test]
fn features_that_the_user_names_are_in_the_key() {
    on_vulkan("features_that_the_user_names_are_in_the_key", |_, _| {
        let gone = Arc::new(AtomicBool::new(false));
        let target = |names: &[&str]| {
            let given = Application::new(&gone).given().features(names.iter().copied());
            VulkanBackend::builder().device(given).build().target(&DEVICE).unwrap()
        };
        assert_eq!(target(&["a", "b"]), target(&["b", "a"]));
        assert_ne!(target(&["a"]), target(&[]));
    });
}

#[test]
fn a_lost_device_is_replaced() {
    on_vulkan("a_lost_device_is_replaced", |_, _| {
        let [old_gone, new_gone] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let vulkan = VulkanBackend::builder().device(Application::new(&old_gone).given()).build();
        let (old, _) = vulkan.build(&DEVICE, &saxpy()).unwrap();
        vulkan.forget_device(&DEVICE).unwrap();
        vulkan.replace_device(&DEVICE, Application::new(&new_gone).given()).unwrap();
        let (new, _) = vulkan.build(&DEVICE, &saxpy()).unwrap();
        assert!(!old_gone.load(Ordering::SeqCst));
        check_saxpy(&new);
        vulkan.unload(old).unwrap();
        assert!(old_gone.load(Ordering::SeqCst), "nothing uses it any more");
        check_saxpy(&new);

        let gone = Arc::new(AtomicBool::new(false));
        for id in [DeviceId::new(Family::VULKAN, 1), DeviceId::new(Family::HOST, 0)] {
            let error = vulkan.replace_device(&id, Application::new(&gone).given()).unwrap_err();
            assert!(matches!(error, BackendError::NoDevice { .. }), "{error}");
        }
        let error = VulkanBackend::new().replace_device(&DEVICE, Application::new(&gone).given());
        assert!(matches!(error.unwrap_err(), BackendError::NoDevice { .. }));
    });
}
