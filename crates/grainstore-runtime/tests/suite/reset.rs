//! A reset of the handles: all new, and nothing cleared.

use std::sync::{Arc, Mutex};

use grainstore_runtime::{Runtime, RuntimeError};

use crate::fake::{Call, Fake, lock, spec};

fn runtime(fake: &Fake) -> Runtime {
    Runtime::builder().backend(fake.clone()).build().unwrap()
}

#[test]
fn every_handle_is_retired_and_the_layers_above_hear_of_it() {
    let fake = Fake::new().with_devices(2);
    let runtime = runtime(&fake);
    let old = runtime.devices();
    let saxpy = spec("saxpy");
    let kernel = runtime.kernel(&old[0], &saxpy).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let (heard, cleared) = (Arc::clone(&told), Arc::clone(&told));
    let _destroyed = runtime.hooks().on_device_destroy(move |id| {
        lock(&heard).push(id.to_string());
        Ok::<_, RuntimeError>(())
    });
    let _cleared = runtime.hooks().on_clear_all(move || {
        lock(&cleared).push("all".into());
        Ok::<_, RuntimeError>(())
    });
    runtime.reset_devices().unwrap();

    assert_eq!(*lock(&told), ["Fake:0", "Fake:1"]);
    let error = runtime.kernel(&old[0], &saxpy).unwrap_err();
    assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
    let error = runtime.destroy_device(&old[0]).unwrap_err();
    assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");

    // The device itself lives on, and so do its kernels.
    let new = runtime.devices();
    assert!(new.iter().zip(&old).all(|(new, old)| new != old && new.id() == old.id()));
    assert!(runtime.kernel(&new[0], &saxpy).unwrap().ptr_eq(&kernel));
    assert_eq!(
        (fake.builds(), fake.calls(Call::Unload), fake.calls(Call::DestroyDevice)),
        (1, 0, 0)
    );

    drop(kernel);
    runtime.destroy_device(&new[0]).unwrap();
    fake.assert_clean();
}

#[test]
fn what_changed_in_the_driver_is_seen_afterwards() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let saxpy = spec("saxpy");
    runtime.kernel(&runtime.devices()[0], &saxpy).unwrap();
    fake.set_toolchain("fakec 2");
    runtime.kernel(&runtime.devices()[0], &saxpy).unwrap();
    assert_eq!(fake.builds(), 1);
    runtime.reset_devices().unwrap();
    runtime.kernel(&runtime.devices()[0], &saxpy).unwrap();
    assert_eq!((fake.builds(), fake.calls(Call::Devices)), (2, 2));
}

#[test]
fn a_failing_listener_stops_no_other_reset() {
    let (a, b) =
        (Fake::named("a", grainstore::Family::CUDA), Fake::named("b", grainstore::Family::HIP));
    let runtime = Runtime::builder().backend(a).backend(b).build().unwrap();
    let devices = runtime.devices();
    let _registration = runtime.hooks().on_device_destroy(|_| Err("stuck"));
    let error = runtime.reset_devices().unwrap_err();
    assert!(matches!(error, RuntimeError::Hook(_)), "{error:?}");
    assert!(devices.iter().all(|device| !device.is_live()));
}

#[test]
fn after_a_reset_the_kernels_hear_of_destroyed_devices_again() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    runtime.kernel(&runtime.devices()[0], &spec("a")).unwrap();
    runtime.reset_devices().unwrap();
    assert_eq!(fake.modules(), 1);
    runtime.hooks().notify_device_destroy(&fake.id(0)).unwrap();
    assert_eq!(fake.modules(), 0);
}

#[test]
fn a_device_that_sleeps_through_a_reset_is_still_shut_down() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    runtime.kernel(&runtime.devices()[0], &spec("a")).unwrap();
    runtime.reset_devices().unwrap();
    runtime.shutdown().unwrap();
    fake.assert_clean();
}

#[test]
fn backends_that_share_a_device_are_reset_together() {
    let family = grainstore::Family::CUDA;
    let (ptx, cubin) = (Fake::named("ptx", family), Fake::named("cubin", family));
    let runtime = Runtime::builder().backend(ptx.clone()).backend(cubin.clone()).build().unwrap();
    let told = Arc::new(Mutex::new(0));
    let count = Arc::clone(&told);
    let _registration = runtime.hooks().on_device_destroy(move |_| {
        *lock(&count) += 1;
        Ok::<_, RuntimeError>(())
    });
    for device in runtime.devices() {
        runtime.kernel(&device, &spec("a")).unwrap();
    }
    runtime.reset_devices().unwrap();
    assert_eq!((*lock(&told), ptx.modules(), cubin.modules()), (1, 1, 1));
    assert!(runtime.devices().iter().all(|device| runtime.kernel(device, &spec("a")).is_ok()));
    assert_eq!((ptx.builds(), cubin.builds()), (1, 1));
}
