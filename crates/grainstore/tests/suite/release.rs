//! Release and abandoning: P3, P4, P6, P8.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Error, Family, Ownership, ReleaseError};

use crate::common::{Failure, Gate, Module, World, check, failure, parts};

fn texts(errors: &[ReleaseError]) -> Vec<String> {
    errors.iter().map(|error| error.downcast_ref::<Failure>().unwrap().to_string()).collect()
}

#[test]
fn p3_the_sum_holds_on_every_path() {
    let world = World::default();
    let device = DeviceId::new(Family::CUDA, 0);
    let cache = world.builder().capacity(3).ownership(Ownership::Borrows).build().unwrap();
    let view = cache.on(&device);
    world.fill(&cache, 0..10);
    check(&cache);
    let _ = cache.remove(&9).wait_timeout(Duration::ZERO);
    view.get_or_build(&1, || world.build(1)).unwrap();
    let _ = cache.evict_device(&device).wait_timeout(Duration::ZERO);
    check(&cache);
    let doomed = view.get_or_build(&2, || {
        let _ = cache.evict_device(&device).wait_timeout(Duration::ZERO);
        check(&cache);
        world.build(2)
    });
    assert!(matches!(doomed, Err(Error::DeviceDestroyed { device: d }) if d == device));
    let doomed = cache.get_or_build(&3, || {
        let _ = cache.clear().wait_timeout(Duration::ZERO);
        world.build(3)
    });
    assert!(matches!(doomed, Err(Error::Cleared)));
    let pin = cache.get_or_build(&4, || world.build(4)).unwrap();
    assert_eq!(cache.clear().abandon(), 1);
    check(&cache);
    let figures = cache.statistics();
    assert_eq!((figures.abandoned, figures.doomed, figures.retired), (1, 2, 0));
    assert_eq!(figures.built, world.made() as u64);
    world.fill(&cache, 5..7);
    drop((cache, pin));
    assert_eq!((world.alive(), world.released().len()), (1, world.made() - 1));
}

#[test]
fn p3_abandoned_values_free_their_places_at_once_and_are_forgotten() {
    let world = World::default();
    let cache = world.cache(2);
    let pins: Vec<_> =
        (0..2).map(|key| cache.get_or_build(&key, || world.build(key)).unwrap()).collect();
    let (drain, second) = (cache.clear(), cache.evict_device(&DeviceId::new(Family::HOST, 0)));
    assert_eq!(second.pending(), 0);
    assert!(cache.get_or_build(&5, || world.build(5)).unwrap_err().is_busy());
    assert_eq!(drain.abandon(), 2);
    world.fill(&cache, [5, 6]);
    assert_eq!((cache.len(), pins[1].key), (2, 1));
    world.take_asked();
    drop(pins);
    // Neither released nor so much as asked about: the driver may be gone.
    assert_eq!((world.alive(), world.take_asked(), world.released()), (4, vec![], vec![]));
    let figures = cache.statistics();
    assert_eq!((figures.abandoned, figures.released, figures.retired), (2, 0, 0));
    check(&cache);
}

#[test]
fn p3_a_busy_value_can_be_abandoned_and_other_drains_hear_of_it() {
    let world = World::default();
    let cache = world.cache(2);
    let device = DeviceId::new(Family::CUDA, 0);
    cache.on(&device).get_or_build(&1, || world.build(1)).unwrap();
    world.set_busy(1, true);
    let (first, second) = (cache.clear(), cache.evict_device(&device));
    let waiter = thread::spawn(move || second.wait().map(drop));
    assert_eq!(first.abandon(), 1);
    waiter.join().unwrap().unwrap();
    world.set_busy(1, false);
    assert_eq!((cache.reap(), world.alive(), cache.statistics().abandoned), (0, 1, 1));
    assert_eq!(cache.evict_device(&device).pending(), 0);
}

#[test]
fn p3_a_doomed_build_can_be_abandoned() {
    let world = World::default();
    let cache = world.builder().capacity(1).ownership(Ownership::Borrows).build().unwrap();
    let gate = Gate::default();
    let build = {
        let (cache, world, gate) = (cache.clone(), world.clone(), gate.clone());
        thread::spawn(move || {
            cache
                .get_or_build(&1, || {
                    gate.pass();
                    world.build(1)
                })
                .map(drop)
        })
    };
    gate.await_arrivals(1);
    assert_eq!(cache.clear().abandon(), 1);
    // Its place is free, and nobody waits for it any more.
    assert_eq!(cache.statistics().building, 0);
    assert_eq!(cache.clear().pending(), 0);
    world.fill(&cache, [1]);
    gate.open();
    assert!(matches!(build.join().unwrap(), Err(Error::Cleared)));
    assert_eq!((world.alive(), world.released()), (2, vec![]));
    let figures = cache.statistics();
    assert_eq!((figures.abandoned, figures.built, figures.building), (1, 2, 0));
    check(&cache);
    world.fill(&cache, [2]);
    assert_eq!(world.released(), [1]);
}

#[test]
fn p3_a_build_abandoned_while_a_victim_goes_for_it_loses_no_place() {
    let world = World::default();
    let myself: Arc<OnceLock<Cache<u64, Module>>> = Arc::default();
    let cache = {
        let (myself, world) = (myself.clone(), world.clone());
        Cache::<u64, Module>::builder()
            .capacity(1)
            .release(move |module| {
                if module.key == 1 {
                    assert_eq!(myself.get().unwrap().remove(&2).abandon(), 1);
                }
                world.release(module);
            })
            .build()
            .unwrap()
    };
    assert!(myself.set(cache.clone()).is_ok());
    world.fill(&cache, [1]);
    let told = cache.get_or_build(&2, || world.build(2));
    assert!(matches!(told, Err(Error::Removed)), "{told:?}");
    let figures = cache.statistics();
    assert_eq!((figures.building, figures.release_failures, cache.len()), (0, 0, 0));
    world.fill(&cache, [3]);
    check(&cache);
}

#[test]
fn p3_an_abandoned_value_outlives_its_cache_with_its_pin() {
    let world = World::default();
    let cache = world.cache(1);
    let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
    assert_eq!(cache.clear().abandon(), 1);
    drop(cache);
    assert_eq!(pin.key, 1);
    drop(pin);
    assert_eq!((world.alive(), world.released()), (1, vec![]));
}

#[test]
fn p4_a_release_may_call_its_cache() {
    let myself: Arc<OnceLock<Cache<u64, u64>>> = Arc::default();
    let calls = Arc::new(AtomicUsize::new(0));
    let cache = {
        let (myself, calls) = (myself.clone(), calls.clone());
        Cache::<u64, u64>::builder()
            .capacity(3)
            .release(move |key| {
                let cache = myself.get().unwrap();
                calls.fetch_add(1, Ordering::SeqCst);
                let _ = (cache.len(), cache.statistics(), cache.get(&key), cache.reap());
                // Puts something into its own cache: there may be room for it, or not.
                if key < 100 {
                    let answer = cache.get_or_build(&(key + 100), || Ok::<_, Failure>(key + 100));
                    assert!(answer.is_ok_and(|pin| *pin == key + 100) || cache.len() <= 3);
                }
                let _ = cache.remove(&(key + 50)).wait_timeout(Duration::ZERO);
            })
            .build()
            .unwrap()
    };
    assert!(myself.set(cache.clone()).is_ok());
    for key in 0..50 {
        cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
        assert!(cache.len() <= 3);
    }
    let _ = cache.clear().wait_timeout(Duration::ZERO);
    let figures = cache.statistics();
    assert_eq!(figures.release_failures, 0);
    assert_eq!(figures.released, calls.load(Ordering::SeqCst) as u64);
    check(&cache);
}

/// What a release or an `idle` does reaps nothing in turn, or releases would nest without end.
#[test]
fn p4_a_reap_inside_a_release_releases_nothing() {
    let world = World::default();
    let myself: Arc<OnceLock<Cache<u64, Module>>> = Arc::default();
    let cache = {
        let (idle, release, myself) = (world.clone(), world.clone(), myself.clone());
        Cache::<u64, Module>::builder()
            .idle(move |module| idle.is_idle(module))
            .release(move |module| {
                if module.key == 1 {
                    release.set_busy(2, false);
                    let reaped = myself.get().unwrap().reap();
                    if reaped > 0 {
                        release.fault(format!("{reaped} were reaped inside a release"));
                    }
                }
                release.release(module);
            })
            .build()
            .unwrap()
    };
    assert!(myself.set(cache.clone()).is_ok());
    world.set_busy(2, true);
    world.fill(&cache, [1, 2]);
    drop(cache.remove(&2));
    assert_eq!(cache.remove(&1).released(), 1);
    assert_eq!((world.released(), cache.reap()), (vec![1], 1));
    assert_eq!(world.released(), [1, 2]);
}

#[test]
fn p4_a_release_that_inserts_meets_a_place_still_taken() {
    let myself: Arc<OnceLock<Cache<u64, u64>>> = Arc::default();
    let told = Arc::new(Mutex::new(Vec::new()));
    let cache = {
        let (myself, told) = (myself.clone(), told.clone());
        Cache::<u64, u64>::builder()
            .capacity(1)
            .release(move |_| {
                let answer = myself.get().unwrap().get_or_build(&9, || Ok::<_, Failure>(9));
                told.lock().unwrap().push(answer.map(drop));
            })
            .build()
            .unwrap()
    };
    assert!(myself.set(cache.clone()).is_ok());
    for key in 1..=2 {
        cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
    }
    let told = told.lock().unwrap();
    assert_eq!(parts(told[0].as_ref().unwrap_err()), [0, 0, 0, 1]);
    assert_eq!(cache.len(), 1);
}

#[test]
fn p4_one_release_that_fails_or_panics_keeps_no_other_from_running() {
    let released = Arc::new(Mutex::new(Vec::new()));
    let sunk = Arc::new(AtomicUsize::new(0));
    let cache = {
        let (released, sunk) = (released.clone(), sunk.clone());
        Cache::<u64, u64>::builder()
            .capacity(8)
            .release(move |key| {
                released.lock().unwrap().push(key);
                assert!(key % 3 != 1, "release of {key}");
                if key % 3 == 2 { Err(failure("no")) } else { Ok(()) }
            })
            .on_release_error(move |_| {
                sunk.fetch_add(1, Ordering::SeqCst);
                panic!("the sink fails, too");
            })
            .build()
            .unwrap()
    };
    for key in 0..20 {
        cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
    }
    let drain = cache.clear();
    assert_eq!((drain.released(), drain.errors().len()), (8, 5));
    assert!(drain.wait().is_err());
    let mut released = released.lock().unwrap().clone();
    released.sort_unstable();
    assert_eq!(released, (0..20).collect::<Vec<_>>());
    let figures = cache.statistics();
    // Twelve victims, eight of which failed, went to the sink; the drain showed the rest.
    assert_eq!((figures.release_failures, sunk.load(Ordering::SeqCst)), (13, 8));
    assert_eq!(figures.released, 20);
}

#[test]
fn p4_a_drop_that_panics_is_a_release_that_failed() {
    #[derive(Debug)]
    struct Fragile;
    impl Drop for Fragile {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let cache = Cache::<u8, Fragile>::builder().capacity(1).build().unwrap();
    cache.get_or_build(&1, || Ok::<_, Failure>(Fragile)).unwrap();
    cache.get_or_build(&2, || Ok::<_, Failure>(Fragile)).unwrap();
    let told = cache.clear().wait().unwrap_err();
    assert!(matches!(told, ReleaseError::Panicked { message } if message == "dropped"));
    assert_eq!(cache.statistics().release_failures, 2);
}

#[test]
fn p6_errors_that_no_call_can_return_go_to_the_sink_once() {
    let world = World::default();
    let device = DeviceId::new(Family::CUDA, 3);
    let sunk = Arc::new(Mutex::new(Vec::new()));
    let cache = {
        let sunk = sunk.clone();
        let sink = move |error: &ReleaseError| sunk.lock().unwrap().push(error.clone());
        world.builder().capacity(2).on_release_error(sink).build().unwrap()
    };
    let take = || texts(&std::mem::take(&mut *sunk.lock().unwrap()));
    (1..=9).for_each(|key| world.fail_release(key));
    // A victim.
    world.fill(&cache, [1, 2, 3]);
    assert_eq!(take(), ["1"]);
    // A drain dropped unread, after the fact and before it.
    drop(cache.remove(&2));
    assert_eq!(take(), ["2"]);
    let pin = cache.get(&3).unwrap();
    drop(cache.remove(&3));
    assert_eq!(take(), [""; 0]);
    drop(pin);
    assert_eq!(take(), ["3"]);
    // Two drains, both dropped unread: once.
    let pin = cache.on(&device).get_or_build(&4, || world.build(4)).unwrap();
    let drains = [cache.evict_device(&device), cache.evict_device(&device)];
    drop(pin);
    drop(drains);
    assert_eq!(take(), ["4"]);
    // A discarded build whose drain was dropped.
    let doomed = cache.get_or_build(&5, || {
        drop(cache.remove(&5));
        world.build(5)
    });
    assert!(matches!(doomed, Err(Error::Removed)));
    assert_eq!(take(), ["5"]);
    // What `wait` does not return, it gives to the sink.
    world.fill(&cache, [6, 7]);
    let error = cache.clear().wait().unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    let first = texts(&[error]);
    assert_eq!(first, [cause]);
    let rest = take();
    assert!(first == ["6"] && rest == ["7"] || first == ["7"] && rest == ["6"]);
    assert_eq!(cache.statistics().release_failures, 7);
    // The end of the cache.
    world.fill(&cache, [8]);
    drop(cache);
    assert_eq!(take(), ["8"]);
}

thread_local! {
    static ALLOWED: Cell<bool> = const { Cell::new(true) };
}

/// A cache whose values are released only where this thread's flag says so.
fn picky(world: &World, capacity: usize) -> Cache<u64, Module> {
    world.builder().capacity(capacity).may_release(|| ALLOWED.get()).build().unwrap()
}

#[test]
fn p8_a_value_waits_for_a_thread_that_may_release_it() {
    let world = World::default();
    let cache = picky(&world, 4);
    let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
    world.fill(&cache, [2]);
    ALLOWED.set(false);
    let drain = cache.clear();
    drop(pin);
    assert_eq!((drain.released(), drain.pending(), cache.reap()), (0, 2, 0));
    assert!(!drain.wait_timeout(Duration::from_millis(1)));
    // Not even asked whether it is idle.
    assert_eq!((world.take_asked(), world.alive()), (vec![], 2));
    let reaped = {
        let cache = cache.clone();
        thread::spawn(move || cache.reap()).join().unwrap()
    };
    assert_eq!((reaped, drain.pending(), drain.released()), (2, 0, 2));
}

#[test]
fn p8_a_miss_and_a_wait_elsewhere_release_it_too() {
    let world = World::default();
    let cache = picky(&world, 2);
    world.fill(&cache, [1]);
    ALLOWED.set(false);
    let drain = cache.clear();
    world.fill(&cache, [2]);
    assert_eq!(drain.pending(), 1);
    let (elsewhere, there) = (cache.clone(), world.clone());
    thread::spawn(move || there.fill(&elsewhere, [3])).join().unwrap();
    assert_eq!((drain.pending(), world.released()), (0, vec![1]));
    let drain = cache.clear();
    assert_eq!(drain.pending(), 2);
    thread::spawn(move || drain.wait().unwrap()).join().unwrap();
    assert_eq!(world.alive(), 0);
}

#[test]
fn p8_a_wait_on_the_wrong_thread_ends_when_another_has_released() {
    let world = World::default();
    let cache = picky(&world, 2);
    world.fill(&cache, [1]);
    ALLOWED.set(false);
    let drain = cache.clear();
    let (go_of, go) = mpsc::channel();
    let reaper = {
        let cache = cache.clone();
        thread::spawn(move || {
            go.recv().unwrap();
            cache.reap()
        })
    };
    go_of.send(()).unwrap();
    drain.wait().unwrap();
    assert_eq!(reaper.join().unwrap(), 1);
}

#[test]
fn p8_a_miss_that_needs_a_release_it_may_not_do_is_busy() {
    let world = World::default();
    let cache = picky(&world, 3);
    world.fill(&cache, 1..=3);
    let pin = cache.get(&1).unwrap();
    ALLOWED.set(false);
    let retired = cache.remove(&2);
    assert_eq!(parts(&cache.get_or_build(&4, || world.build(4)).unwrap_err()), [1, 1, 0, 1]);
    assert!(!cache.wait_for_room(Duration::ZERO));
    assert_eq!((world.alive(), cache.len()), (3, 2));
    ALLOWED.set(true);
    world.fill(&cache, [4]);
    assert_eq!((world.released(), retired.pending()), (vec![2], 0));
    drop(pin);
}

#[test]
fn p8_a_place_that_needs_no_release_is_taken_anywhere() {
    let world = World::default();
    let cache = picky(&world, 3);
    ALLOWED.set(false);
    world.fill(&cache, 1..=3);
    assert_eq!(cache.len(), 3);
    // A doomed value waits as well.
    let cache = picky(&world, 3);
    let doomed = cache.get_or_build(&9, || {
        drop(cache.remove(&9));
        world.build(9)
    });
    assert!(matches!(doomed, Err(Error::Removed)));
    assert_eq!((cache.statistics().retired, world.released()), (1, vec![]));
    ALLOWED.set(true);
    assert_eq!((cache.reap(), world.released()), (1, vec![9]));
}

#[test]
fn p8_a_panic_in_may_release_means_no() {
    let world = World::default();
    let bad = Arc::new(AtomicBool::new(true));
    let flag = bad.clone();
    let may = move || {
        assert!(!flag.load(Ordering::SeqCst), "no word");
        true
    };
    let cache = world.builder().capacity(1).may_release(may).build().unwrap();
    world.fill(&cache, [1]);
    assert!(cache.get_or_build(&2, || world.build(2)).unwrap_err().is_busy());
    bad.store(false, Ordering::SeqCst);
    world.fill(&cache, [2]);
}
