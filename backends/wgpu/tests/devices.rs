//! Lives of devices: destroyed, lost, replaced, made anew; and that nothing is left at the end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{ADD, DEVICE, adapters, add, device, instance, launch, on_wgpu, spec};
use grainstore::{DeviceId, Family};
use grainstore_runtime::{Backend, BackendError, Runtime, RuntimeError};
use grainstore_wgpu::{Layout, WgpuBackend, WgpuModule};
use wgpu::{Adapter, Backends};

/// The adapter that this device is of, for another device of it.
fn adapter_of(device: &wgpu::Device) -> Adapter {
    let backends = Backends::from(device.adapter_info().backend);
    adapters(backends).into_iter().next().unwrap()
}

#[test]
fn a_device_that_was_given_is_gone_until_another_is_given() {
    on_wgpu("a_device_that_was_given_is_gone_until_another_is_given", |wgpu, first| {
        let (old, _) = wgpu.build(&DEVICE, &add(1)).unwrap();
        assert_eq!(wgpu.live_handles(), 1);
        wgpu.destroy_device(&DEVICE).unwrap();
        // Twice is no harm, and neither is a device that never was.
        wgpu.destroy_device(&DEVICE).unwrap();
        wgpu.destroy_device(&DeviceId::new(Family::WGPU, 9)).unwrap();
        assert_eq!(launch(&old, "add", &[1]), [2], "a module outlives its device's place");

        assert!(wgpu.devices().unwrap().is_empty());
        let error = wgpu.build(&DEVICE, &add(1)).unwrap_err();
        assert!(matches!(error, BackendError::NoDevice { .. }), "{error}");
        assert!(error.to_string().contains("replace_device"), "{error}");

        let (next, queue) = device(&adapter_of(first));
        wgpu.replace_device(&DEVICE, next.clone(), queue.clone()).unwrap();
        let (new, _) = wgpu.build(&DEVICE, &add(2)).unwrap();
        assert_eq!(new.device(), &next);
        assert_eq!(launch(&new, "add", &[1]), [3]);
        assert_eq!(wgpu.live_handles(), 2);
        let stranger = DeviceId::new(Family::WGPU, 9);
        assert!(wgpu.replace_device(&stranger, next, queue).is_err());

        wgpu.unload(old).unwrap();
        wgpu.unload(new).unwrap();
        assert_eq!(wgpu.live_handles(), 0);
    });
}

#[test]
fn wgpu_itself_counts_nothing_that_is_left() {
    on_wgpu("wgpu_itself_counts_nothing_that_is_left", |_, first| {
        let backends = Backends::from(first.adapter_info().backend);
        let instance = instance(backends);
        let adapter = pollster::block_on(instance.enumerate_adapters(backends)).remove(0);
        let counts = || {
            let report = instance.generate_report().unwrap();
            let hub = report.hub_report();
            [
                &hub.devices,
                &hub.queues,
                &hub.shader_modules,
                &hub.compute_pipelines,
                &hub.pipeline_layouts,
                &hub.bind_group_layouts,
                &hub.pipeline_caches,
            ]
            .map(|registry| registry.num_allocated)
        };
        let (device, queue) = device(&adapter);
        let backend = WgpuBackend::builder().device(device, queue).build();
        let runtime = Runtime::builder().backend(backend.clone()).build().unwrap();
        let handle = runtime.devices().remove(0);
        let kernel = runtime.kernel(&handle, &add(1)).unwrap();
        // Of a failed build nothing stays.
        let layout = Layout::new().group(&[]);
        let wrong = spec(ADD).entry("add").option(layout).build().unwrap();
        runtime.kernel(&handle, &wrong).unwrap_err();
        assert_eq!(counts(), [1, 1, 0, 1, 0, 0, 0]);
        drop(kernel);
        runtime.destroy_device(&handle).unwrap();
        assert_eq!(counts(), [0; 7]);
        assert_eq!(backend.live_handles(), 0);
    });
}

#[test]
fn a_function_makes_a_device_when_it_is_wanted() {
    on_wgpu("a_function_makes_a_device_when_it_is_wanted", |_, first| {
        let adapter = adapter_of(first);
        let made = Arc::new(AtomicUsize::new(0));
        let (count, fails) = (Arc::clone(&made), Arc::new(AtomicBool::new(true)));
        let failing = Arc::clone(&fails);
        let wgpu = WgpuBackend::builder()
            .device_with(move || {
                if failing.load(Ordering::Relaxed) {
                    return Err("no adapter yet");
                }
                count.fetch_add(1, Ordering::Relaxed);
                Ok(device(&adapter))
            })
            .build();
        let error = wgpu.devices().unwrap_err().to_string();
        assert_eq!(error, "the application's device failed: no adapter yet");
        fails.store(false, Ordering::Relaxed);
        let listed = wgpu.devices().unwrap();
        let target = wgpu.target(&DEVICE).unwrap();
        wgpu.build(&DEVICE, &add(1)).unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 1);

        wgpu.destroy_device(&DEVICE).unwrap();
        assert_eq!(wgpu.devices().unwrap(), listed);
        assert_eq!(wgpu.target(&DEVICE).unwrap(), target);
        assert_eq!(made.load(Ordering::Relaxed), 1, "to be asked about, it need not be made");
        let (module, _) = wgpu.build(&DEVICE, &add(1)).unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 2);
        assert_eq!(launch(&module, "add", &[1]), [2]);
    });
}

#[test]
fn a_lost_device_is_said_to_be_lost() {
    on_wgpu("a_lost_device_is_said_to_be_lost", |wgpu, device| {
        wgpu.build(&DEVICE, &add(1)).unwrap();
        device.destroy();
        let error = wgpu.build(&DEVICE, &add(2)).unwrap_err();
        assert!(matches!(error, BackendError::DeviceLost { .. }), "{error}");
        assert!(error.to_string().contains("replace_device"), "{error}");
    });
}

#[test]
fn the_runtime_goes_on_after_a_loss() {
    on_wgpu("the_runtime_goes_on_after_a_loss", |_, first| {
        let adapter = adapter_of(first);
        let wgpu = WgpuBackend::builder()
            .device_with(move || Ok::<_, BackendError>(device(&adapter)))
            .build();
        let runtime = Runtime::builder().backend(wgpu.clone()).build().unwrap();
        let handle = runtime.devices().remove(0);
        let before = runtime.kernel(&handle, &add(1)).unwrap();
        before.module::<WgpuModule>().unwrap().device().destroy();
        // What is in memory is still served; who launches it finds out.
        runtime.kernel(&handle, &add(1)).unwrap();
        let error = runtime.kernel(&handle, &add(2)).unwrap_err();
        assert!(error.to_string().contains("the device is lost"), "{error}");

        runtime.device_lost(&handle).unwrap();
        let error = runtime.kernel(&handle, &add(1)).unwrap_err();
        assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
        let handle = runtime.devices().remove(0);
        let after = runtime.kernel(&handle, &add(1)).unwrap();
        assert_eq!(launch(after.module::<WgpuModule>().unwrap(), "add", &[1]), [2]);
        drop((before, after));
        runtime.shutdown().unwrap();
    });
}

#[test]
fn several_devices_are_numbered_in_order() {
    on_wgpu("several_devices_are_numbered_in_order", |_, first| {
        let adapter = adapter_of(first);
        let [(a, on_a), (b, on_b)] = [device(&adapter), device(&adapter)];
        let wgpu = WgpuBackend::builder().device(a.clone(), on_a).device(b.clone(), on_b).build();
        let second = DeviceId::new(Family::WGPU, 1);
        let ids: Vec<_> = wgpu.devices().unwrap().into_iter().map(|info| info.id).collect();
        assert_eq!(ids, [DEVICE, second]);
        assert_eq!(wgpu.target(&DEVICE).unwrap(), wgpu.target(&second).unwrap());
        let on_first = wgpu.build(&DEVICE, &add(1)).unwrap().0;
        let on_second = wgpu.build(&second, &add(2)).unwrap().0;
        assert_eq!((on_first.device(), on_second.device()), (&a, &b));
        assert_eq!(launch(&on_first, "add", &[1]), [2]);
        assert_eq!(launch(&on_second, "add", &[1]), [3]);
    });
}
