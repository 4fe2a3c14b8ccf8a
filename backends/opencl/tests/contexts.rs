//! Which context modules live in: one for each device, one for several, or the application's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::Arc;

use common::{check_saxpy, in_child, launch, on_opencl, saxpy, spec};
use grainstore::DeviceId;
use grainstore_conformance::testing::is_child;
use grainstore_opencl::OpenClBackend;
use grainstore_runtime::{Backend, BackendError, Runtime};
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices};

/// As [`on_opencl`], where the driver for the processor shows two devices of one platform.
fn on_two_devices(test: &str, body: impl FnOnce(&OpenClBackend, [DeviceId; 2])) {
    if !is_child() {
        in_child(test, &[("POCL_DEVICES", "basic basic")]);
        return;
    }
    on_opencl(test, |opencl, _| {
        let devices = opencl.devices().unwrap();
        let same = |a: usize, b: usize| devices[a].driver == devices[b].driver;
        if devices.len() < 2 || !same(0, 1) {
            return common::not_run(test, "no driver here shows two devices of one platform");
        }
        body(opencl, [devices[0].id, devices[1].id]);
    });
}

#[test]
fn each_device_has_a_context_of_its_own() {
    on_two_devices("each_device_has_a_context_of_its_own", |opencl, devices| {
        let [a, b] = devices.map(|device| opencl.build(&device, &saxpy()).unwrap().0);
        assert_ne!(a.context(), b.context());
        assert_ne!(a.device(), b.device());
        assert_eq!(opencl.live_handles(), 4);
    });
}

#[test]
fn devices_of_a_platform_share_a_context() {
    on_two_devices("devices_of_a_platform_share_a_context", |_, devices| {
        let opencl = OpenClBackend::builder().shared_contexts().build();
        let built = devices.map(|device| opencl.build(&device, &saxpy()).unwrap());
        assert_eq!(built[0].0.context(), built[1].0.context());
        assert_ne!(built[0].0.device(), built[1].0.device());
        assert_eq!(opencl.live_handles(), 3, "a context and two programs");
        for (number, (module, artifact)) in built.into_iter().enumerate() {
            check_saxpy(&module);
            let artifact = artifact.unwrap();
            let loaded = opencl.load(&devices[number], &saxpy(), &artifact).unwrap();
            assert_eq!(loaded.device(), module.device());
            check_saxpy(&loaded);
            // Alike as they are, each device's code is good on the other.
            let other = opencl.load(&devices[1 - number], &saxpy(), &artifact).unwrap();
            check_saxpy(&other);
        }
        // With headers the program is linked, which goes another way.
        let spec = spec("#include \"h.h\"\nkernel void k(global int *x) { x[0] = VALUE; }")
            .header("h.h", "#define VALUE 7")
            .build()
            .unwrap();
        for device in &devices {
            let (module, artifact) = opencl.build(device, &spec).unwrap();
            assert_eq!(launch(&module, "k", &[0]), [7]);
            let module = opencl.load(device, &spec, &artifact.unwrap()).unwrap();
            assert_eq!(launch(&module, "k", &[0]), [7]);
        }
    });
}

#[test]
fn a_shared_context_stays_until_its_last_device_goes() {
    on_two_devices("a_shared_context_stays_until_its_last_device_goes", |_, [a, b]| {
        let opencl = OpenClBackend::builder().shared_contexts().build();
        let build = |device| opencl.build(&device, &saxpy()).unwrap().0;
        let (on_a, on_b) = (build(a), build(b));
        opencl.destroy_device(&a).unwrap();
        let again = build(a);
        assert_eq!(again.context(), on_b.context(), "the other device held it");
        opencl.destroy_device(&a).unwrap();
        opencl.destroy_device(&b).unwrap();
        let new = build(a);
        assert_ne!(new.context(), on_a.context(), "nobody held it any more");
        for module in [on_a, on_b, again, new] {
            check_saxpy(&module);
            opencl.unload(module).unwrap();
        }
        opencl.destroy_device(&a).unwrap();
        assert_eq!(opencl.live_handles(), 0);
    });
}

#[test]
fn a_lost_device_is_made_anew_and_its_neighbour_stays() {
    on_two_devices("a_lost_device_is_made_anew_and_its_neighbour_stays", |_, [a, b]| {
        let opencl = OpenClBackend::builder().shared_contexts().build();
        let build = |device| opencl.build(&device, &saxpy()).unwrap().0;
        let (lost, neighbour) = (build(a), build(b));
        opencl.forget_device(&a).unwrap();
        let new = build(a);
        assert_ne!(new.context(), lost.context());
        assert_eq!(build(b).context(), neighbour.context());
        opencl.forget_device(&b).unwrap();
        assert_eq!(build(b).context(), new.context(), "the new one is sound");
    });
}

#[test]
fn modules_are_made_in_the_applications_own_context() {
    on_opencl("modules_are_made_in_the_applications_own_context", |all, _| {
        let raw = get_all_devices(CL_DEVICE_TYPE_ALL).unwrap()[0];
        let context = Context::from_device(&Device::new(raw)).unwrap();
        // SAFETY: the context lives, and it is of the same library.
        let opencl = unsafe { OpenClBackend::builder().build_in(context.get()) }.unwrap();
        assert_eq!(opencl.devices().unwrap().len(), 1);
        let device = opencl.device_of(raw).unwrap();
        assert_eq!(opencl.live_handles(), 0, "the application's context is none of its own");

        let (module, artifact) = opencl.build(&device, &saxpy()).unwrap();
        assert_eq!((module.context(), module.device()), (context.get(), raw));
        let elsewhere = all.device_of(raw).unwrap();
        check_saxpy(&all.load(&elsewhere, &saxpy(), &artifact.unwrap()).unwrap());
        opencl.destroy_device(&device).unwrap();
        opencl.forget_device(&device).unwrap();
        let (again, _) = opencl.build(&device, &saxpy()).unwrap();
        assert_eq!(again.context(), context.get(), "there is no other");
        opencl.unload(again).unwrap();
        assert_eq!(opencl.live_handles(), 1);

        // Whoever goes first: the rest still works.
        drop(opencl);
        drop(context);
        check_saxpy(&module);
    });
}

#[test]
fn the_context_is_given_back() {
    on_opencl("the_context_is_given_back", |_, _| {
        let raw = get_all_devices(CL_DEVICE_TYPE_ALL).unwrap()[0];
        let context = Context::from_device(&Device::new(raw)).unwrap();
        let before = context.reference_count().unwrap();
        // SAFETY: the context lives, and it is of the same library.
        let opencl = unsafe { OpenClBackend::builder().build_in(context.get()) }.unwrap();
        assert!(context.reference_count().unwrap() > before, "it is retained");
        let id = opencl.device_of(raw).unwrap();
        let runtime = Runtime::builder().backend(opencl).build().unwrap();
        let device = runtime.device(&id).unwrap();
        let kernel = runtime.kernel(&device, &saxpy()).unwrap();
        drop(kernel);
        runtime.destroy_device(&device).unwrap();
        runtime.shutdown().unwrap();
        drop((runtime, device));
        assert_eq!(context.reference_count().unwrap(), before);
    });
}

#[test]
fn a_context_of_several_devices_is_taken_with_all_of_them() {
    on_two_devices("a_context_of_several_devices_is_taken_with_all_of_them", |_, _| {
        let mut raw = get_all_devices(CL_DEVICE_TYPE_ALL).unwrap();
        raw.truncate(2);
        raw.reverse();
        let context = Context::from_devices(&raw, &[], None, std::ptr::null_mut()).unwrap();
        // SAFETY: the context lives, and it is of the same library.
        let opencl = unsafe { OpenClBackend::builder().build_in(context.get()) }.unwrap();
        let opencl = Arc::new(opencl);
        for raw in context.devices() {
            let device = opencl.device_of(*raw).unwrap();
            let (module, artifact) = opencl.build(&device, &saxpy()).unwrap();
            assert_eq!((module.context(), module.device()), (context.get(), *raw));
            check_saxpy(&module);
            check_saxpy(&opencl.load(&device, &saxpy(), &artifact.unwrap()).unwrap());
        }
        let error = opencl.device_of(std::ptr::null_mut()).unwrap_err();
        assert!(matches!(error, BackendError::NoDevice { .. }), "{error}");
        assert!(error.to_string().contains("OpenCL:0, OpenCL:1"), "{error}");
    });
}

#[test]
fn native_handles_are_counted() {
    on_opencl("native_handles_are_counted", |opencl, device| {
        assert_eq!(opencl.live_handles(), 0);
        let (module, artifact) = opencl.build(&device, &saxpy()).unwrap();
        assert_eq!(opencl.live_handles(), 2, "a context and a program");
        let kernel = module.kernel("saxpy").unwrap();
        let other = module.kernel("saxpy").unwrap();
        assert_eq!(opencl.live_handles(), 4);
        drop(kernel);
        let raw = other.into_raw();
        assert_eq!(opencl.live_handles(), 2, "the caller has the kernel now");
        drop(opencl3::kernel::Kernel::new(raw));

        let wrong = spec("kernel void k() { no }").header("h.h", "").build().unwrap();
        opencl.build(&device, &wrong).unwrap_err();
        let missing = spec(common::SAXPY).entry("none").build().unwrap();
        opencl.load(&device, &missing, &artifact.unwrap()).unwrap_err();
        assert_eq!(opencl.live_handles(), 2, "failures leave nothing");

        opencl.destroy_device(&device).unwrap();
        assert_eq!(opencl.live_handles(), 2, "the module keeps its context");
        opencl.unload(module).unwrap();
        assert_eq!(opencl.live_handles(), 0);
    });
}
