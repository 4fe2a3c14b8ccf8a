//! Devices and the hooks that destroy them: D1 to D6, H5.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Drain, Error, Family, Framework, Hooks, Ownership, Pinned};

use crate::common::{Failure, Gate, Module, World, check, failure};

const A: DeviceId = DeviceId::new(Family::CUDA, 0);
const B: DeviceId = DeviceId::new(Family::CUDA, 1);
const C: DeviceId = DeviceId::new(Family::VULKAN, 0);

fn on(world: &World, cache: &Cache<u64, Module>, device: &DeviceId, key: u64) -> Pinned<Module> {
    cache.on(device).get_or_build(&key, || world.build(key)).unwrap()
}

fn sorted<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort();
    values
}

#[test]
fn d1_the_pair_is_the_identity() {
    let world = World::default();
    let cache = world.cache(20);
    let families = [
        Family::CUDA,
        Family::HIP,
        Family::OPENCL,
        Family::VULKAN,
        Family::METAL,
        Family::WGPU,
        Family::HOST,
        Family::new("some other API"),
    ];
    for family in families {
        drop(on(&world, &cache, &DeviceId::new(family, 0), 1));
    }
    assert_eq!((cache.len(), world.made()), (8, 8));
    let same =
        [DeviceId::new(Family::new("Some Other api"), 0), Framework::new("HIP/RTC").device(0)];
    for device in same {
        assert!(cache.on(&device).get(&1).is_some(), "{device}");
    }
    assert_eq!(cache.evict_device(&DeviceId::new(Family::HIP, 1)).released(), 0);
    assert_eq!(cache.evict_device(&DeviceId::new(Family::HIP, 0)).released(), 1);
}

#[test]
fn d2_one_key_on_two_devices_and_on_none_is_three_values() {
    let world = World::default();
    let cache = world.cache(9);
    let (a, b) = (on(&world, &cache, &A, 1), on(&world, &cache, &B, 1));
    let none = cache.get_or_build(&1, || world.build(1)).unwrap();
    let both = cache.on_all(&[A, B]).get_or_build(&1, || world.build(1)).unwrap();
    assert_eq!((world.made(), cache.len()), (4, 4));
    let serials = [a.serial, b.serial, none.serial, both.serial];
    assert_eq!(sorted(serials), [1, 2, 3, 4]);
    assert!(Pinned::ptr_eq(&a, &cache.on(&A).get(&1).unwrap()));
    assert!(Pinned::ptr_eq(&none, &cache.get(&1).unwrap()));
    assert!(Pinned::ptr_eq(&none, &cache.on_all(&[]).get(&1).unwrap()));
    assert!(cache.on(&C).get(&1).is_none());
    // Each is removed by itself.
    assert_eq!(cache.on(&B).remove(&1).pending(), 1);
    assert_eq!(cache.on(&C).remove(&1).pending(), 0);
    assert_eq!(cache.len(), 3);
    drop((a, b, none, both));
    // `evict_device` retires exactly the values of that device.
    assert_eq!(cache.evict_device(&A).released(), 2);
    assert_eq!((cache.len(), cache.get(&1).is_some()), (1, true));
    check(&cache);
}

#[test]
fn d3_a_device_of_the_same_id_builds_afresh_at_once() {
    let world = World::default();
    let cache = world.cache(9);
    let old = on(&world, &cache, &A, 1);
    let drain = cache.evict_device(&A);
    assert!(cache.on(&A).get(&1).is_none());
    let new = on(&world, &cache, &A, 1);
    assert!(!Pinned::ptr_eq(&old, &new));
    drop(old);
    drain.wait().unwrap();
    assert!(cache.on(&A).get(&1).is_some());
}

#[test]
fn d3_a_build_for_it_is_doomed_though_no_value_was_cached() {
    let world = World::default();
    let cache = world.cache(9);
    let mut drain = None;
    let doomed = cache.on(&A).get_or_build(&1, || {
        drain = Some(cache.evict_device(&A));
        // Other devices' builds, and those for none, are left alone.
        world.build(1)
    });
    assert!(matches!(doomed, Err(Error::DeviceDestroyed { device: A })));
    let drain = drain.unwrap();
    assert_eq!((drain.released(), drain.pending(), world.alive()), (1, 0, 0));
    for (device, evicted) in [(&A, &B), (&C, &A)] {
        let built = cache.on(device).get_or_build(&2, || {
            assert_eq!(cache.evict_device(evicted).pending(), 0);
            world.build(2)
        });
        assert!(built.is_ok());
    }
    let built = cache.get_or_build(&2, || {
        assert_eq!(cache.evict_device(&A).pending(), 0);
        world.build(2)
    });
    assert!(built.is_ok());
}

#[test]
fn d3_a_build_that_fails_after_its_device_went_tells_of_the_device() {
    let cache = World::default().cache(2);
    let doomed = cache.on(&A).get_or_build(&1, || {
        drop(cache.evict_device(&A));
        Err::<Module, _>(failure("context lost"))
    });
    assert!(matches!(doomed, Err(Error::DeviceDestroyed { .. })));
    assert_eq!(cache.statistics().building, 0);
}

#[test]
fn d4_its_drain_covers_what_earlier_calls_retired() {
    let world = World::default();
    let cache = world.cache(9);
    let pins: Vec<_> = (1..=4).map(|key| on(&world, &cache, &A, key)).collect();
    let other = on(&world, &cache, &B, 1);
    world.set_busy(4, true);
    drop(cache.on(&A).remove(&1));
    drop(cache.clear());
    drop(cache.evict_device(&A));
    let fresh = on(&world, &cache, &A, 7);
    let drain = cache.evict_device(&A);
    assert_eq!(sorted(drain.pending_keys()), [1, 2, 3, 4, 7]);
    drop((pins, fresh));
    assert_eq!((drain.pending_keys(), other.key), (vec![4], 1));
    world.set_busy(4, false);
    drain.wait().unwrap();
    assert_eq!(world.alive(), 1);
    assert_eq!(cache.evict_device(&A).pending(), 0);
}

#[test]
fn d4_and_what_another_thread_is_releasing_or_building() {
    let world = World::default();
    let (releasing, building) = (Gate::default(), Gate::default());
    let cache = {
        let (world, gate) = (world.clone(), releasing.clone());
        Cache::<u64, Module>::builder()
            .release(move |module| {
                if module.key == 1 {
                    gate.pass();
                }
                world.release(module);
            })
            .build()
            .unwrap()
    };
    drop(on(&world, &cache, &A, 1));
    let remover = {
        let cache = cache.clone();
        thread::spawn(move || drop(cache.on(&A).remove(&1)))
    };
    releasing.await_arrivals(1);
    let builder = {
        let (cache, world, gate) = (cache.clone(), world.clone(), building.clone());
        thread::spawn(move || {
            let build = || {
                gate.pass();
                world.build(2)
            };
            cache.on(&A).get_or_build(&2, build).map(drop)
        })
    };
    building.await_arrivals(1);
    let drains = [cache.evict_device(&A), cache.evict_device(&A)];
    assert!(drains.iter().all(|drain| sorted(drain.pending_keys()) == [1, 2]));
    releasing.open();
    remover.join().unwrap();
    assert!(drains.iter().all(|drain| drain.pending_keys() == [2]));
    building.open();
    for drain in drains {
        drain.wait().unwrap();
    }
    assert_eq!(world.alive(), 0);
    assert!(matches!(builder.join().unwrap(), Err(Error::DeviceDestroyed { .. })));
}

#[test]
fn d5_a_set_of_devices_has_no_order_and_goes_with_any_of_them() {
    for gone in [A, B, C] {
        let world = World::default();
        let cache = world.cache(9);
        let sets = [&[A, B, C][..], &[C, B, A], &[B, B, A, C, C, A]];
        for set in sets {
            cache.on_all(set).get_or_build(&1, || world.build(1)).unwrap();
        }
        assert_eq!(world.made(), 1);
        assert!(cache.on_all(&[A, B]).get(&1).is_none());
        // A set of one is that one.
        let one = cache.on_all(&[A, A]).get_or_build(&1, || world.build(1)).unwrap();
        assert!(Pinned::ptr_eq(&one, &cache.on(&A).get(&1).unwrap()));
        drop(one);
        let drain = cache.evict_device(&gone);
        assert_eq!(drain.released(), if gone == A { 2 } else { 1 });
        assert!(cache.on_all(sets[0]).get(&1).is_none());
        for device in [A, B, C] {
            drop(cache.evict_device(&device));
        }
        assert_eq!((world.alive(), cache.len()), (0, 0));
        check(&cache);
    }
}

#[test]
fn d5_a_build_for_several_is_doomed_by_any() {
    let world = World::default();
    let cache = world.cache(9);
    let doomed = cache.on_all(&[A, B]).get_or_build(&1, || {
        drop(cache.evict_device(&B));
        drop(cache.evict_device(&A));
        world.build(1)
    });
    // The first to go is the reason.
    assert!(matches!(doomed, Err(Error::DeviceDestroyed { device: B })));
    assert_eq!((world.alive(), cache.statistics().doomed), (0, 1));
}

#[test]
fn d5_one_value_is_counted_once_by_the_drain_of_either_device() {
    let world = World::default();
    let cache = world.cache(9);
    let pin = cache.on_all(&[A, B]).get_or_build(&1, || world.build(1)).unwrap();
    let drains = [cache.evict_device(&A), cache.evict_device(&B)];
    assert!(drains.iter().all(|drain| drain.pending() == 1));
    drop(pin);
    assert!(drains.iter().all(|drain| (drain.released(), drain.pending()) == (1, 0)));
    assert_eq!(cache.statistics().released, 1);
}

#[test]
fn h5_a_wired_cache_follows_the_destruction_of_devices() {
    let (hooks, world) = (Hooks::new(), World::default());
    let cache = world.cache(9);
    let registration = cache.listen(&hooks);
    drop([on(&world, &cache, &A, 1), on(&world, &cache, &B, 1)]);
    hooks.notify_device_destroy(&A).unwrap();
    assert_eq!((cache.len(), world.alive()), (1, 1));
    // It owns, and so does not clear itself when others clear.
    hooks.notify_clear_all().unwrap();
    hooks.around_clear(|| Ok::<_, Failure>(())).unwrap();
    assert_eq!(cache.len(), 1);
    drop(registration);
    hooks.notify_device_destroy(&B).unwrap();
    assert_eq!(cache.len(), 1);
}

#[test]
fn h5_a_borrowing_cache_also_clears_on_clear_all() {
    let (hooks, world) = (Hooks::new(), World::default());
    let cache = world.builder().ownership(Ownership::Borrows).build().unwrap();
    let _registration = cache.listen(&hooks);
    world.fill(&cache, [1, 2]);
    hooks.notify_clear_all().unwrap();
    assert_eq!((cache.len(), world.alive()), (0, 0));
    // What began between the first notification and the release is doomed by the second.
    let doomed = cache.get_or_build(&3, || {
        hooks.around_clear(|| Ok::<_, Failure>(())).unwrap();
        world.build(3)
    });
    assert!(matches!(doomed, Err(Error::Cleared)));
    let told = cache.on(&A).get_or_build(&4, || {
        hooks.notify_device_destroy(&A).unwrap();
        world.build(4)
    });
    assert!(matches!(told, Err(Error::DeviceDestroyed { device: A })));
}

#[test]
fn h5_plans_let_go_of_kernels_before_the_owner_releases_them() {
    let (hooks, world) = (Hooks::new(), World::default());
    let kernels = world.builder().build().unwrap();
    let plans: Cache<u64, Pinned<Module>> =
        Cache::builder().borrows_from(&kernels).build().unwrap();
    // The owner is wired first, and yet called last.
    let _wired = [kernels.listen(&hooks), plans.listen(&hooks)];
    for device in [A, B] {
        let plan = || Ok::<_, Error>(on(&world, &kernels, &device, 1));
        drop(plans.on(&device).get_or_build(&1, plan).unwrap());
    }
    hooks.notify_device_destroy(&A).unwrap();
    assert_eq!((plans.len(), kernels.len(), world.alive()), (1, 1, 1));
    hooks.around_clear(|| kernels.clear().wait()).unwrap();
    assert_eq!((plans.len(), kernels.len(), world.alive()), (0, 0, 0));
}

#[test]
fn h5_a_registration_does_not_keep_its_cache_alive() {
    let (hooks, world) = (Hooks::new(), World::default());
    let cache = world.cache(3);
    cache.listen(&hooks).forget();
    drop(on(&world, &cache, &A, 1));
    drop(cache);
    assert_eq!(world.alive(), 0);
    hooks.notify_device_destroy(&A).unwrap();
}

#[test]
fn h5_a_release_error_is_the_listeners() {
    let (hooks, world) = (Hooks::new(), World::default());
    let sunk = Arc::new(Mutex::new(0));
    let cache = {
        let sunk = sunk.clone();
        world.builder().on_release_error(move |_| *sunk.lock().unwrap() += 1).build().unwrap()
    };
    let _registration = cache.listen(&hooks);
    world.fail_release(1);
    drop([on(&world, &cache, &A, 1), on(&world, &cache, &A, 2)]);
    let error = hooks.notify_device_destroy(&A).unwrap_err();
    assert!(error.to_string().contains('1'), "{error}");
    assert_eq!((world.alive(), *sunk.lock().unwrap()), (0, 0));
}

#[test]
fn a_view_can_be_kept_and_sent() {
    fn is_sent<T: Send + Sync>(_: &T) {}
    let world = World::default();
    let cache = world.cache(3);
    let view = cache.on(&A);
    is_sent(&view);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(view.get_or_build(&1, || world.build(1)).unwrap().key, 1));
        }
    });
    assert_eq!(world.made(), 1);
    let drain: Drain<u64> = view.remove(&1);
    assert!(drain.wait_timeout(Duration::ZERO));
}
