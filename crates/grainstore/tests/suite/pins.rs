//! Pins and what they keep: P1, P2, P7.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Family, Pinned};

use crate::common::{Failure, Module, World, check, failure, parts};

fn is_sent_and_shared<T: Clone + Send + Sync + 'static>(value: T) -> T {
    value
}

#[test]
fn p1_a_pinned_value_outlives_all_that_may_happen_to_its_cache() {
    let world = World::default();
    let cache = world.cache(10);
    let device = DeviceId::new(Family::HIP, 1);
    let pins: Vec<_> = (0..4)
        .map(|key| cache.on(&device).get_or_build(&key, || world.build(key)).unwrap())
        .map(is_sent_and_shared)
        .collect();
    let drains = [
        cache.on(&device).remove(&0),
        cache.evict_device(&device),
        cache.clear(),
        cache.evict_device(&device),
    ];
    assert_eq!(drains.iter().map(grainstore::Drain::pending).collect::<Vec<_>>(), [1, 4, 0, 4]);
    drop(cache);
    assert_eq!(world.alive(), 4);
    assert_eq!(pins.iter().map(|pin| pin.key).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let clones = pins.clone();
    drop(pins);
    assert_eq!((world.alive(), clones[2].key), (4, 2));
    drop(clones);
    assert_eq!(world.alive(), 0);
    for drain in drains {
        drain.wait().unwrap();
    }
}

#[test]
fn p1_values_without_clone_or_debug_will_do() {
    struct Bare(#[allow(dead_code)] u8);
    let cache = Cache::<u8, Bare>::builder().build().unwrap();
    let pin = cache.get_or_build(&1, || Ok::<_, Failure>(Bare(1))).unwrap();
    let other = is_sent_and_shared(pin.clone());
    assert!(Pinned::ptr_eq(&pin, &other));
}

#[test]
fn p1_a_pin_is_shown_and_borrowed_as_its_value() {
    fn text(value: &impl AsRef<String>) -> &str {
        value.as_ref()
    }
    let cache = Cache::<u8, String>::builder().build().unwrap();
    let pin = cache.get_or_build(&1, || Ok::<_, Failure>("module".to_owned())).unwrap();
    assert_eq!((&*format!("{pin:>8}"), text(&pin), pin.len()), ("  module", "module", 6));
}

#[test]
fn p2_a_retired_value_is_found_no_more_and_released_with_its_last_pin() {
    let world = World::default();
    let cache = world.cache(4);
    let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
    let drain = cache.remove(&1);
    assert!(cache.get(&1).is_none());
    assert_eq!((cache.len(), cache.statistics().retired), (0, 1));
    // The same key again is another value beside it.
    let fresh = cache.get_or_build(&1, || world.build(1)).unwrap();
    assert!(!Pinned::ptr_eq(&pin, &fresh));
    assert_eq!((world.alive(), drain.pending_keys()), (2, vec![1]));
    drop(pin);
    assert_eq!((drain.released(), drain.pending(), world.alive()), (1, 0, 1));
    assert!(cache.get(&1).is_some());
    check(&cache);
}

#[test]
fn p2_on_the_thread_that_drops_the_last_pin() {
    let place = Arc::new(Mutex::new(None));
    let cache = {
        let place = place.clone();
        Cache::<u8, u8>::builder()
            .release(move |_| *place.lock().unwrap() = Some(thread::current().id()))
            .build()
            .unwrap()
    };
    let pin = cache.get_or_build(&1, || Ok::<_, Failure>(1)).unwrap();
    let drain = cache.clear();
    let other = thread::spawn(move || {
        drop(pin);
        thread::current().id()
    });
    let other = other.join().unwrap();
    assert_eq!(*place.lock().unwrap(), Some(other));
    drain.wait().unwrap();
}

#[test]
fn p2_a_retired_busy_value_goes_at_the_next_miss_reap_or_wait() {
    for way in 0..4 {
        let world = World::default();
        let cache = world.cache(4);
        world.fill(&cache, [1, 2]);
        world.set_busy(1, true);
        let drain = cache.clear();
        assert_eq!((drain.released(), drain.pending_keys()), (1, vec![1]));
        world.fill(&cache, [3]);
        assert_eq!((cache.reap(), world.alive()), (0, 2));
        world.set_busy(1, false);
        match way {
            0 => world.fill(&cache, [4]),
            1 => assert_eq!(cache.reap(), 1),
            2 => assert!(drain.wait_timeout(Duration::ZERO)),
            // A failing build's miss will do, and so does one that finds its place at once.
            _ => assert!(cache.get_or_build(&5, || Err(failure("no"))).is_err()),
        }
        assert_eq!((drain.pending(), drain.released()), (0, 2), "way {way}");
        assert_eq!(world.released(), [2, 1]);
        check(&cache);
    }
}

#[test]
fn p2_a_hit_neither_reaps_nor_asks() {
    let world = World::default();
    let cache = world.cache(4);
    world.fill(&cache, [1, 2]);
    world.set_busy(1, true);
    let drain = cache.remove(&1);
    world.set_busy(1, false);
    world.take_asked();
    world.fill(&cache, [2]);
    assert!(cache.get(&2).is_some() && cache.get(&1).is_none());
    assert_eq!((drain.pending(), world.take_asked()), (1, vec![]));
}

#[test]
fn p2_a_last_pin_that_finds_its_value_busy_leaves_it_for_later() {
    let world = World::default();
    let cache = world.cache(1);
    let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
    world.set_busy(1, true);
    let drain = cache.clear();
    drop(pin);
    assert_eq!((drain.pending(), world.alive()), (1, 1));
    assert_eq!(parts(&cache.get_or_build(&2, || world.build(2)).unwrap_err()), [0, 0, 0, 1]);
    world.set_busy(1, false);
    world.fill(&cache, [2]);
    assert_eq!((drain.pending(), world.released()), (0, vec![1]));
}

#[test]
fn p7_the_last_handle_releases_what_is_unpinned_busy_or_not() {
    let world = World::default();
    let cache = world.cache(5);
    world.fill(&cache, 1..=4);
    world.set_busy(1, true);
    world.set_busy(2, true);
    world.set_busy(5, true);
    let retired = cache.remove(&2);
    let pin = cache.get(&4).unwrap();
    let busy_pin = cache.get_or_build(&5, || world.build(5)).unwrap();
    let other = cache.clone();
    drop(cache);
    assert_eq!(world.alive(), 5);
    drop(other);
    let mut released = world.released();
    released.sort_unstable();
    assert_eq!((released, retired.pending()), (vec![1, 2, 3], 0));
    assert_eq!((pin.key, busy_pin.key), (4, 5));
    drop(pin);
    // Nobody would come for it later.
    drop(busy_pin);
    assert_eq!(world.alive(), 0);
}

#[test]
fn p7_a_drain_and_a_registration_do_not_keep_a_cache() {
    let world = World::default();
    let hooks = grainstore::Hooks::new();
    let cache = world.cache(5);
    world.fill(&cache, 1..=2);
    let registration = cache.listen(&hooks);
    let drain = cache.remove(&1);
    drop(cache);
    assert_eq!(world.alive(), 0);
    hooks.notify_device_destroy(&DeviceId::new(Family::CUDA, 0)).unwrap();
    drain.wait().unwrap();
    drop(registration);
}

#[test]
fn p7_pins_dropped_by_many_threads_after_the_cache() {
    let world = World::default();
    let cache = world.cache(64);
    let pins: Vec<_> =
        (0..64).map(|key| cache.get_or_build(&key, || world.build(key)).unwrap()).collect();
    drop(cache);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let pins = pins.clone();
            thread::spawn(move || drop(pins))
        })
        .collect();
    drop(pins);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(world.alive(), 0);
}

#[test]
fn p7_a_pin_in_a_thread_local_is_released_at_its_threads_end() {
    thread_local! {
        static LAST: RefCell<Option<Pinned<Module>>> = const { RefCell::new(None) };
    }
    let world = World::default();
    let cache = world.cache(2);
    let held = {
        let (cache, world) = (cache.clone(), world.clone());
        thread::spawn(move || {
            // The slot first, so that it outlives what the cache keeps for the thread.
            LAST.with_borrow_mut(|last| assert!(last.is_none()));
            let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
            LAST.set(Some(pin));
            cache.remove(&1).pending()
        })
    };
    assert_eq!(held.join().unwrap(), 1);
    assert_eq!(world.alive(), 0);
    check(&cache);
}

#[test]
fn p1_what_is_at_hand_is_pinned_and_counts_as_used() {
    let world = World::default();
    let cache = world.cache(2);
    assert!(cache.try_get(&1).is_none());
    drop(cache.get_or_build(&1, || world.build(1)).unwrap());
    drop(cache.get_or_build(&2, || world.build(2)).unwrap());
    // The first look of a thread goes the long way, and so does the first after an install.
    drop(cache.get(&1));
    let hits = cache.statistics().hits;
    let pin = cache.try_get(&1).expect("it is at hand");
    assert_eq!((pin.key, cache.statistics().hits), (1, hits + 1));
    assert!(cache.try_get(&3).is_none());
    drop(cache.get_or_build(&3, || world.build(3)).unwrap());
    assert!(cache.get(&2).is_none(), "the other was used last");
    drop(pin);

    let device = DeviceId::new(Family::HOST, 0);
    assert!(cache.on(&device).try_get(&1).is_none(), "that one is on no device");
}
