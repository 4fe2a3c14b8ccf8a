//! The order of a teardown, and what holds it up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use grainstore_runtime::{
    BackendCache, BackendError, Kernel, KernelSpec, Runtime, RuntimeError, Settings, Warning,
};

use crate::fake::store::FakeStore;
use crate::fake::{Call, Fake, FakeModule, lock, spec};

/// Long enough for what is sure to come; a test that runs into it fails.
const LONG: Duration = Duration::from_secs(60);

fn runtime(fake: &Fake) -> Runtime {
    Runtime::builder().backend(fake.clone()).drain_bound(LONG).build().unwrap()
}

fn held(result: Result<(), RuntimeError>) -> Vec<String> {
    match result {
        Err(RuntimeError::DeviceHeld { kernels, .. }) => kernels,
        other => panic!("{other:?}"),
    }
}

#[test]
fn notify_then_unload_then_the_context() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    // A memo above holds a kernel; it lets go when it hears.
    let memo = Arc::new(Mutex::new(Some(runtime.kernel(device, &spec("pinned")).unwrap())));
    runtime.kernel(device, &spec("loose")).unwrap();
    let _registration = runtime.hooks().on_device_destroy({
        let (fake, memo, runtime) = (fake.clone(), Arc::clone(&memo), runtime.clone());
        let device = device.clone();
        move |id| {
            assert_eq!(*id, fake.id(0));
            // The device is out of the table by now: nobody gets a new kernel.
            assert!(!device.is_live());
            let error = runtime.kernel(&device, &spec("loose")).unwrap_err();
            assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
            fake.note("told");
            lock(&memo).take();
            Ok::<_, RuntimeError>(())
        }
    });
    runtime.destroy_device(device).unwrap();
    let mut log = fake.log();
    assert_eq!(log.drain(..2).collect::<Vec<_>>(), ["build pinned", "build loose"]);
    assert_eq!(log.remove(0), "told");
    let mut unloads: Vec<_> = log.drain(..2).collect();
    unloads.sort();
    assert_eq!(unloads, ["unload loose", "unload pinned"]);
    assert_eq!(log, ["destroy 0", "context 0 gone"]);
    fake.assert_clean();
    // Once more is no harm.
    runtime.destroy_device(device).unwrap();
    assert_eq!(fake.calls(Call::DestroyDevice), 1);
}

#[test]
fn a_device_with_a_pinned_module_stands_until_the_pin_is_gone() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let kernel = runtime.kernel(device, &spec("held")).unwrap();
    runtime.kernel(device, &spec("loose")).unwrap();

    let destroy = || runtime.destroy_device_within(device, Duration::ZERO);
    assert_eq!(held(destroy()), ["held"]);
    assert_eq!(held(destroy()), ["held"]);
    assert_eq!((fake.modules(), fake.contexts(), fake.calls(Call::DestroyDevice)), (1, 1, 0));
    assert_eq!(kernel.module::<FakeModule>().unwrap().name, "held");
    let error = runtime.kernel(device, &spec("held")).unwrap_err();
    assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
    // No second life beside the first.
    assert_eq!(runtime.devices(), []);
    let error = runtime.device(&fake.id(0)).unwrap_err();
    assert!(error.to_string().contains("its modules are in use: held"), "{error}");

    drop(kernel);
    destroy().unwrap();
    fake.assert_clean();
}

#[test]
fn the_bound_is_waited_for() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let kernel = runtime.kernel(device, &spec("held")).unwrap();
    let (told, hears) = std::sync::mpsc::channel();
    let _registration = runtime.hooks().on_device_destroy(move |_| told.send(()));
    thread::scope(|scope| {
        let destroyed = scope.spawn(|| runtime.destroy_device(device));
        hears.recv().unwrap();
        drop(kernel);
        destroyed.join().unwrap().unwrap();
    });
    fake.assert_clean();
}

#[test]
fn a_device_made_again_is_a_fresh_generation() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let old = runtime.devices().remove(0);
    let saxpy = spec("saxpy");
    runtime.kernel(&old, &saxpy).unwrap();
    runtime.destroy_device(&old).unwrap();

    let new = runtime.devices().remove(0);
    assert_eq!(new.id(), old.id());
    assert_ne!(new, old);
    assert!(new.generation() > old.generation());
    let kernel = runtime.kernel(&new, &saxpy).unwrap();
    assert_eq!(fake.builds(), 2);

    // The old handle gets nothing of the new device, and can do nothing to it.
    let generated = || -> KernelSpec { panic!("a spec for a handle that is good no more") };
    for stale in [runtime.kernel(&old, &saxpy), runtime.kernel_by(&old, "id", generated)] {
        let error = stale.unwrap_err();
        assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
    }
    runtime.destroy_device(&old).unwrap();
    runtime.device_lost(&old).unwrap();
    assert!(new.is_live());
    drop(kernel);
    runtime.destroy_device(&new).unwrap();
    fake.assert_clean();
}

#[test]
fn an_old_handle_takes_no_place_of_the_new_device() {
    let fake = Fake::new();
    let runtime = Runtime::builder().backend(fake.clone()).capacity(1).build().unwrap();
    let old = runtime.devices().remove(0);
    let (a, b) = (spec("a"), spec("b"));
    runtime.kernel(&old, &b).unwrap();
    runtime.destroy_device(&old).unwrap();
    let new = runtime.devices().remove(0);
    runtime.kernel(&new, &a).unwrap();
    runtime.kernel(&old, &b).unwrap_err();
    runtime.kernel(&new, &a).unwrap();
    assert_eq!(fake.builds(), 2);
}

#[test]
fn only_the_devices_own_modules_go() {
    let fake = Fake::new().with_devices(2);
    let runtime = runtime(&fake);
    let devices = runtime.devices();
    let saxpy = spec("saxpy");
    let kept = runtime.kernel(&devices[1], &saxpy).unwrap();
    runtime.kernel(&devices[0], &saxpy).unwrap();
    runtime.destroy_device(&devices[0]).unwrap();
    assert!(runtime.kernel(&devices[1], &saxpy).unwrap().ptr_eq(&kept));
    assert_eq!((fake.modules(), fake.contexts()), (1, 1));
}

#[test]
fn an_unfinished_teardown_ends_by_itself_when_the_device_is_wanted_again() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let told = count_notifications(&runtime);
    let kernel = runtime.kernel(device, &spec("held")).unwrap();
    held(runtime.destroy_device_within(device, Duration::ZERO));
    drop(kernel);
    let new = runtime.device(&fake.id(0)).unwrap();
    assert_ne!(new, *device);
    assert_eq!((fake.calls(Call::DestroyDevice), *lock(&told)), (1, 1));
    fake.assert_clean();
    runtime.destroy_device(device).unwrap();
    assert!(new.is_live());
}

fn count_notifications(runtime: &Runtime) -> Arc<Mutex<usize>> {
    let told = Arc::new(Mutex::new(0));
    let count = Arc::clone(&told);
    let listener = move |_: &_| {
        *lock(&count) += 1;
        Ok::<_, RuntimeError>(())
    };
    runtime.hooks().on_device_destroy(listener).forget();
    told
}

#[test]
fn abandoned_modules_stay_good_and_are_never_released() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let kernel = runtime.kernel(device, &spec("held")).unwrap();
    runtime.kernel(device, &spec("loose")).unwrap();
    runtime.destroy_device_abandoning(device, Duration::ZERO).unwrap();

    assert_eq!((fake.calls(Call::Unload), fake.calls(Call::ForgetDevice)), (1, 1));
    // The context lives on, with the module that needs it; the next life gets one of its own.
    assert_eq!((fake.modules(), fake.contexts()), (1, 1));
    let next = runtime.kernel(&runtime.devices()[0], &spec("held")).unwrap();
    assert_ne!(context(&kernel), context(&next));
    drop(kernel);
    assert_eq!((fake.calls(Call::Unload), fake.leaked()), (1, 0));
    let statistics = runtime.backends()[0].statistics();
    assert_eq!((statistics.built, statistics.released, statistics.abandoned), (3, 1, 1));
}

#[test]
fn nothing_of_a_lost_device_is_touched() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let kernel = runtime.kernel(device, &spec("held")).unwrap();
    runtime.kernel(device, &spec("loose")).unwrap();
    let told = count_notifications(&runtime);

    runtime.device_lost(device).unwrap();
    drop(kernel);
    assert_eq!((fake.calls(Call::Unload), fake.calls(Call::DestroyDevice)), (0, 0));
    assert_eq!((fake.calls(Call::ForgetDevice), fake.leaked(), *lock(&told)), (1, 0, 1));
    let statistics = runtime.backends()[0].statistics();
    assert_eq!((statistics.released, statistics.abandoned), (0, 2));

    let next = &runtime.devices()[0];
    runtime.kernel(next, &spec("held")).unwrap();
    runtime.destroy_device(next).unwrap();
    assert_eq!(fake.calls(Call::Unload), 1);
}

#[test]
fn a_build_that_ends_after_its_device_was_lost_is_forgotten() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let gate = fake.hold_builds();
    thread::scope(|scope| {
        let built = scope.spawn(|| runtime.kernel(device, &spec("late")));
        gate.arrived(1);
        runtime.device_lost(device).unwrap();
        gate.open();
        let error = built.join().unwrap().unwrap_err();
        assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
    });
    assert_eq!((fake.calls(Call::Unload), fake.leaked()), (0, 0));
}

#[test]
fn a_build_in_flight_is_doomed_and_its_module_released() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    let runtime = Runtime::builder()
        .backend(fake.clone())
        .store(store.clone())
        .drain_bound(LONG)
        .build()
        .unwrap();
    let device = &runtime.devices()[0];
    let gate = fake.hold_builds();
    thread::scope(|scope| {
        let built = scope.spawn(|| runtime.kernel(device, &spec("late")));
        gate.arrived(1);
        assert_eq!(held(runtime.destroy_device_within(device, Duration::ZERO)), ["late"]);
        let destroyed = scope.spawn(|| runtime.destroy_device(device));
        gate.open();
        let error = built.join().unwrap().unwrap_err();
        assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
        destroyed.join().unwrap().unwrap();
    });
    fake.assert_clean();
    // What the compiler made is as good as any: the next life finds it in the store.
    runtime.kernel(&runtime.devices()[0], &spec("late")).unwrap();
    assert_eq!((fake.builds(), fake.loads()), (1, 1));
}

#[test]
fn everything_is_done_and_the_first_failure_returned() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let unload = || BackendError::failed("fakeUnload", "no");
    let destroy = || BackendError::failed("fakeDestroy", "no");

    // All three fail: the listener comes first.
    let device = &runtime.devices()[0];
    runtime.kernel(device, &spec("a")).unwrap();
    fake.fail(Call::Unload, unload());
    fake.fail(Call::DestroyDevice, destroy());
    let listener = runtime.hooks().on_device_destroy(|_| Err("the memo is stuck"));
    let error = runtime.destroy_device(device).unwrap_err();
    assert!(matches!(error, RuntimeError::Hook(_)), "{error:?}");
    assert!(error.to_string().contains("the memo is stuck"), "{error}");
    fake.assert_clean();
    drop(listener);

    // Two fail: the release comes first.
    let device = &runtime.devices()[0];
    runtime.kernel(device, &spec("a")).unwrap();
    fake.fail(Call::Unload, unload());
    fake.fail(Call::DestroyDevice, destroy());
    let error = runtime.destroy_device(device).unwrap_err();
    assert!(matches!(error, RuntimeError::Release(_)), "{error:?}");
    assert!(error.to_string().contains("fakeUnload"), "{error}");
    fake.assert_clean();

    // Only the context.
    let device = &runtime.devices()[0];
    runtime.kernel(device, &spec("a")).unwrap();
    fake.fail(Call::DestroyDevice, destroy());
    let error = runtime.destroy_device(device).unwrap_err();
    assert!(error.to_string().contains("fakeDestroy"), "{error}");
    fake.assert_clean();
    runtime.destroy_device(device).unwrap();
}

#[test]
fn a_listener_that_failed_is_told_again_with_the_next_call() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let kept: Arc<Mutex<Option<Kernel>>> = Arc::default();
    *lock(&kept) = Some(runtime.kernel(device, &spec("a")).unwrap());
    let failed = Mutex::new(false);
    let memo = Arc::clone(&kept);
    let _registration = runtime.hooks().on_device_destroy(move |_| {
        if !std::mem::replace(&mut *lock(&failed), true) {
            return Err("not now");
        }
        lock(&memo).take();
        Ok(())
    });
    assert_eq!(held(runtime.destroy_device_within(device, Duration::ZERO)), ["a"]);
    runtime.destroy_device_within(device, Duration::ZERO).unwrap();
    fake.assert_clean();
}

#[test]
fn listeners_and_releases_may_call_back() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    runtime.kernel(device, &spec("a")).unwrap();
    let _registration = runtime.hooks().on_device_destroy({
        let (runtime, device) = (runtime.clone(), device.clone());
        move |_| {
            let again = runtime.destroy_device(&device).unwrap_err();
            assert!(matches!(again, RuntimeError::TeardownRunning { .. }), "{again}");
            assert_eq!(runtime.devices(), []);
            drop(runtime.clear()?);
            Ok::<_, RuntimeError>(())
        }
    });
    runtime.destroy_device(device).unwrap();
    fake.assert_clean();
    assert_eq!(runtime.devices().len(), 1);
}

#[test]
fn a_second_thread_waits_for_the_teardown_of_the_first() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    runtime.kernel(device, &spec("a")).unwrap();
    let gate = fake.hold_unloads();
    thread::scope(|scope| {
        let first = scope.spawn(|| runtime.destroy_device(device));
        gate.arrived(1);
        let error = runtime.destroy_device_within(device, Duration::ZERO).unwrap_err();
        assert!(matches!(error, RuntimeError::TeardownRunning { .. }), "{error}");
        let second = scope.spawn(|| runtime.destroy_device(device));
        gate.open();
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
    assert_eq!(fake.calls(Call::DestroyDevice), 1);
    fake.assert_clean();
}

#[test]
fn a_teardown_from_inside_a_build_does_not_wait_for_that_build() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = runtime.devices().remove(0);
    // A generator that destroys the very device it makes a kernel for.
    let error = runtime
        .kernel_by(&device, "outer", || {
            runtime.kernel(&device, &spec("inner"))?;
            runtime.destroy_device(&device)?;
            Ok::<_, RuntimeError>(spec("outer"))
        })
        .unwrap_err();
    assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error:?}");
    fake.assert_clean();
}

#[test]
fn when_somebody_else_destroys_the_device_its_handle_and_kernels_go() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let saxpy = spec("saxpy");
    runtime.kernel(device, &saxpy).unwrap();
    runtime.hooks().notify_device_destroy(&fake.id(0)).unwrap();

    assert_eq!(fake.modules(), 0);
    let error = runtime.kernel(device, &saxpy).unwrap_err();
    assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
    // The next life has a context of its own, and nobody is told a second time.
    let told = count_notifications(&runtime);
    let next = &runtime.devices()[0];
    assert_eq!((fake.contexts(), *lock(&told)), (0, 0));
    runtime.kernel(next, &saxpy).unwrap();
    assert_eq!(fake.builds(), 2);
}

#[test]
fn backends_of_one_family_hear_of_each_others_teardowns() {
    let family = grainstore::Family::CUDA;
    let (ptx, cubin) = (Fake::named("ptx", family), Fake::named("cubin", family));
    let runtime = Runtime::builder().backend(ptx.clone()).backend(cubin.clone()).build().unwrap();
    let devices = runtime.devices();
    for device in &devices {
        runtime.kernel(device, &spec("a")).unwrap();
    }
    runtime.destroy_device(&devices[0]).unwrap();
    assert_eq!((ptx.modules(), cubin.modules()), (0, 0));
    assert!(!devices[1].is_live());
}

#[test]
fn a_release_error_that_no_call_returns_is_a_warning() {
    let fake = Fake::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    let settings = Settings::new().on_warning(move |warning: &Warning<'_>| {
        lock(&listener).push(warning.to_string());
    });
    let cache = BackendCache::new(fake.clone(), settings).unwrap();
    let device = &cache.devices().unwrap()[0];
    let kernel = cache.kernel(device, &spec("a")).unwrap();
    let drain = cache.clear().unwrap();
    assert_eq!((drain.pending(), drain.released()), (1, 0));
    drop(drain);
    fake.fail(Call::Unload, BackendError::failed("fakeUnload", "no"));
    drop(kernel);
    let told = lock(&told).clone();
    assert!(told.len() == 1 && told[0].contains("fakeUnload failed: no"), "{told:?}");
    assert_eq!((fake.modules(), fake.leaked()), (0, 0));
}

#[test]
fn lives_follow_each_other_and_each_releases_its_own() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let saxpy = spec("saxpy");
    for _ in 0..200 {
        let device = &runtime.devices()[0];
        runtime.kernel(device, &saxpy).unwrap();
        runtime.destroy_device(device).unwrap();
    }
    assert_eq!((fake.builds(), fake.calls(Call::Unload)), (200, 200));
    fake.assert_clean();
}

fn context(kernel: &Kernel) -> usize {
    kernel.module::<FakeModule>().unwrap().context()
}

#[test]
fn launches_while_devices_come_and_go_never_see_another_lifes_kernel() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let saxpy = spec("saxpy");
    // Which context each generation was served from: always the same one.
    let contexts: Mutex<HashMap<u64, usize>> = Mutex::default();
    let launch = || {
        let mut served = 0;
        while served < 500 {
            let Some(device) = runtime.devices().pop() else { continue };
            match runtime.kernel(&device, &saxpy) {
                Ok(kernel) => {
                    let known = *lock(&contexts)
                        .entry(device.generation())
                        .or_insert_with(|| context(&kernel));
                    assert_eq!(context(&kernel), known);
                    served += 1;
                }
                Err(RuntimeError::DeviceDestroyed { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    thread::scope(|scope| {
        let launchers: Vec<_> = (0..4).map(|_| scope.spawn(launch)).collect();
        while !launchers.iter().all(ScopedJoinHandle::is_finished) {
            if let Some(device) = runtime.devices().pop() {
                runtime.destroy_device(&device).unwrap();
            }
            drop(runtime.clear().unwrap());
        }
    });
    runtime.shutdown().unwrap();
    fake.assert_clean();
}
