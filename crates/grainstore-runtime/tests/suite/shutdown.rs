//! The end: everything let go within a bound, and then nothing touches the driver.

use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use grainstore_runtime::{Runtime, RuntimeError};

use crate::fake::store::{FakeStore, Mode};
use crate::fake::{Call, Fake, lock, spec};

fn runtime(fake: &Fake) -> Runtime {
    let bound = Duration::from_secs(60);
    Runtime::builder().backend(fake.clone()).drain_bound(bound).build().unwrap()
}

#[test]
fn it_releases_everything_and_may_be_called_again() {
    let fake = Fake::new().with_devices(3);
    let runtime = runtime(&fake);
    let devices = runtime.devices();
    for device in &devices {
        runtime.kernel(device, &spec("a")).unwrap();
    }
    runtime.shutdown().unwrap();
    fake.assert_clean();
    assert_eq!(fake.calls(Call::DestroyDevice), 3);

    fake.seal();
    runtime.shutdown().unwrap();
    let ends = [
        runtime.kernel(&devices[0], &spec("a")).map(drop),
        runtime.kernel_by(&devices[0], "id", || spec("a")).map(drop),
        runtime.device(&devices[0].id()).map(drop),
        runtime.backends()[0].devices().map(drop),
    ];
    for end in ends {
        assert!(matches!(end, Err(RuntimeError::ShutDown)), "{end:?}");
    }
    assert_eq!(runtime.devices(), []);
    runtime.destroy_device(&devices[0]).unwrap();
    drop(runtime);
    fake.assert_clean();
}

#[test]
fn a_runtime_that_was_never_used_touches_no_driver() {
    let fake = Fake::new();
    fake.seal();
    runtime(&fake).shutdown().unwrap();
    fake.assert_clean();
}

#[test]
fn plans_that_know_no_device_let_go_too() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let plans = runtime.plans_by::<u32, _>(4, |_| true).unwrap();
    let device = &runtime.devices()[0];
    let plan = plans.get_or_build(&1, || runtime.kernel(device, &spec("a")));
    drop(plan.unwrap());
    runtime.shutdown().unwrap();
    fake.assert_clean();
    assert_eq!(plans.len(), 0);
}

#[test]
fn what_is_pinned_is_named_and_abandoned() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let kernel = runtime.kernel(&runtime.devices()[0], &spec("held")).unwrap();
    runtime.kernel(&runtime.devices()[0], &spec("loose")).unwrap();
    let error = runtime.shutdown_within(Duration::ZERO).unwrap_err();
    let RuntimeError::ShutdownIncomplete { running, pinned } = &error else { panic!("{error:?}") };
    assert_eq!((running.len(), &pinned[..]), (0, &["held on Fake:0".to_owned()][..]));
    assert!(error.to_string().contains("abandoned while pinned: held on Fake:0"), "{error}");
    assert_eq!((fake.modules(), fake.calls(Call::DestroyDevice)), (1, 0));
    let statistics = runtime.backends()[0].statistics();
    assert_eq!((statistics.released, statistics.abandoned), (1, 1));

    // From here on nothing touches the driver, in whatever order the rest goes.
    fake.seal();
    runtime.shutdown().unwrap();
    drop(runtime);
    drop(kernel);
    assert_eq!((fake.violations(), fake.leaked()), (vec![], 0));
}

#[test]
fn builds_that_still_run_are_named_and_their_modules_forgotten() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let gate = fake.hold_builds();
    thread::scope(|scope| {
        let built = scope.spawn(|| runtime.kernel(device, &spec("slow")));
        gate.arrived(1);
        for _ in 0..2 {
            let error = runtime.shutdown_within(Duration::ZERO).unwrap_err();
            let RuntimeError::ShutdownIncomplete { running, pinned } = &error else {
                panic!("{error:?}")
            };
            assert_eq!((&running[..], pinned.len()), (&["slow on Fake:0".to_owned()][..], 0));
        }
        fake.seal();
        gate.open();
        let error = built.join().unwrap().unwrap_err();
        assert!(matches!(error, RuntimeError::ShutDown), "{error}");
    });
    assert_eq!((fake.violations(), fake.calls(Call::Unload), fake.leaked()), (vec![], 0, 0));
    // Now that it has ended there is nothing more to say.
    runtime.shutdown().unwrap();
}

#[test]
fn builds_are_waited_for_and_their_modules_released() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let gate = fake.hold_builds();
    thread::scope(|scope| {
        let built = scope.spawn(|| runtime.kernel(device, &spec("slow")));
        gate.arrived(1);
        let ended = scope.spawn(|| runtime.shutdown());
        // The waiters are told at once, before the build ends: the handle is good no more.
        while device.is_live() {
            thread::yield_now();
        }
        gate.open();
        let error = built.join().unwrap().unwrap_err();
        assert!(matches!(error, RuntimeError::ShutDown), "{error}");
        ended.join().unwrap().unwrap();
    });
    fake.assert_clean();
}

#[test]
fn a_shutdown_from_inside_its_own_listener_is_the_same_shutdown() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    runtime.kernel(&runtime.devices()[0], &spec("a")).unwrap();
    let again = runtime.clone();
    let registration = runtime.hooks().on_clear_all(move || again.shutdown());
    runtime.shutdown().unwrap();
    fake.assert_clean();
    drop(registration);
}

#[test]
fn a_shutdown_from_inside_a_build_does_not_wait_for_that_build() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    store.set_mode(Mode::Failing);
    let runtime: Arc<OnceLock<Runtime>> = Arc::default();
    let ended: Arc<Mutex<Option<RuntimeError>>> = Arc::default();
    let (inside, end) = (Arc::clone(&runtime), Arc::clone(&ended));
    let built = Runtime::builder()
        .backend(fake.clone())
        .store(store)
        .on_warning(move |_| *lock(&end) = inside.get().and_then(|it| it.shutdown().err()))
        .build();
    let runtime = runtime.get_or_init(|| built.unwrap());

    let error = runtime.kernel(&runtime.devices()[0], &spec("a")).unwrap_err();
    assert!(matches!(error, RuntimeError::ShutDown), "{error}");
    let ended = lock(&ended).take().unwrap();
    let RuntimeError::ShutdownIncomplete { running, .. } = &ended else { panic!("{ended:?}") };
    assert_eq!(running[..], ["a on Fake:0"]);
}

#[test]
fn of_two_shutdowns_at_once_one_waits_for_the_other() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    runtime.kernel(&runtime.devices()[0], &spec("a")).unwrap();
    let gate = fake.hold_unloads();
    thread::scope(|scope| {
        let first = scope.spawn(|| runtime.shutdown());
        gate.arrived(1);
        let error = runtime.shutdown_within(Duration::ZERO).unwrap_err();
        let RuntimeError::ShutdownIncomplete { running, .. } = &error else { panic!("{error:?}") };
        assert!(running.contains(&"the shutdown of fake on another thread".to_owned()), "{error}");
        let second = scope.spawn(|| runtime.shutdown());
        gate.open();
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
    fake.assert_clean();
}

#[test]
fn a_release_that_is_still_running_is_named() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = runtime.devices().remove(0);
    let kernel = runtime.kernel(&device, &spec("a")).unwrap();
    drop(runtime.clear().unwrap());
    let gate = fake.hold_unloads();
    thread::scope(|scope| {
        scope.spawn(|| drop(kernel));
        gate.arrived(1);
        let error = runtime.shutdown_within(Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("a release on Fake:0"), "{error}");
        gate.open();
    });
    runtime.shutdown().unwrap();
}

#[test]
fn a_backend_by_itself_shuts_down_as_well() {
    let fake = Fake::new();
    let cache = grainstore_runtime::BackendCache::new(fake.clone(), Default::default()).unwrap();
    let device = &cache.devices().unwrap()[0];
    cache.kernel(device, &spec("a")).unwrap();
    cache.shutdown().unwrap();
    fake.assert_clean();
    assert!(matches!(cache.kernel(device, &spec("a")), Err(RuntimeError::ShutDown)));
}
