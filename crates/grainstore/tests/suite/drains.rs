//! Waiting for a teardown: P5.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Family, ReleaseError};

use crate::common::{Failure, Gate, Module, World};

fn texts(errors: &[ReleaseError]) -> Vec<String> {
    errors.iter().map(|error| error.downcast_ref::<Failure>().unwrap().to_string()).collect()
}

#[test]
fn p5_wait_blocks_until_the_last_pin_of_the_last_value_is_gone() {
    let world = World::default();
    let cache = world.cache(4);
    let pins: Vec<_> =
        (0..4).map(|key| cache.get_or_build(&key, || world.build(key)).unwrap()).collect();
    let drain = cache.clear();
    let (done_of, done) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let result = drain.wait();
        done_of.send(()).unwrap();
        result
    });
    for pin in pins {
        assert!(done.try_recv().is_err());
        drop(pin);
    }
    waiter.join().unwrap().unwrap();
    assert_eq!(world.alive(), 0);
}

#[test]
fn p5_wait_sees_by_itself_that_a_value_has_become_idle() {
    let world = World::default();
    let cache = world.cache(4);
    world.fill(&cache, [1]);
    world.set_busy(1, true);
    let drain = cache.clear();
    world.take_asked();
    let waiter = thread::spawn(move || drain.wait());
    while world.take_asked().is_empty() {
        thread::yield_now();
    }
    world.set_busy(1, false);
    waiter.join().unwrap().unwrap();
}

#[test]
fn p5_waits_ask_again_at_growing_distances() {
    let world = World::default();
    let device = DeviceId::new(Family::CUDA, 0);
    let cache = world.builder().build().unwrap();
    cache.on(&device).get_or_build(&1, || world.build(1)).unwrap();
    world.set_busy(1, true);
    let drains = [cache.clear(), cache.evict_device(&device), cache.evict_device(&device)];
    world.take_asked();
    // Several at once, who must not keep one another awake.
    let waiters =
        drains.map(|drain| thread::spawn(move || drain.wait_timeout(Duration::from_millis(300))));
    for waiter in waiters {
        assert!(!waiter.join().unwrap());
    }
    let asked = world.take_asked().len();
    assert!(asked < 150, "asked {asked} times by three in 0.3 s");
}

#[test]
fn p5_a_stuck_reader_blocks_no_teardown_for_ever() {
    let world = World::default();
    let cache = world.cache(4);
    let stuck = cache.get_or_build(&7, || world.build(7)).unwrap();
    world.fill(&cache, [8]);
    let drain = cache.clear();
    assert!(!drain.wait_timeout(Duration::from_millis(10)));
    assert_eq!((drain.released(), drain.pending_keys()), (1, vec![7]));
    assert_eq!(drain.abandon(), 1);
    assert_eq!(stuck.key, 7);
}

/// Calls this from inside a build, an `idle` or a release of a cache in which key 1 is retired and
/// pinned by somebody else, and key 2 can go.
fn inside(place: &str, call: impl Fn(&Cache<u64, Module>) + Send + Sync + 'static) {
    let world = World::default();
    let myself: Arc<OnceLock<Cache<u64, Module>>> = Arc::default();
    let armed = Arc::new(AtomicBool::new(false));
    let call = Arc::new(call);
    let run = {
        let (myself, armed) = (myself.clone(), armed.clone());
        move || {
            if armed.swap(false, Ordering::SeqCst) {
                call(myself.get().unwrap());
            }
        }
    };
    let cache = {
        let (idle, release, world) = (run.clone(), run.clone(), world.clone());
        let (in_idle, in_release) = (place == "idle", place == "release");
        Cache::<u64, Module>::builder()
            .idle(move |_| {
                if in_idle {
                    idle();
                }
                true
            })
            .release(move |module| {
                if in_release {
                    release();
                }
                world.release(module);
            })
            .build()
            .unwrap()
    };
    assert!(myself.set(cache.clone()).is_ok());
    let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
    world.fill(&cache, [2, 3]);
    armed.store(true, Ordering::SeqCst);
    if place == "build" {
        let build = || {
            run();
            world.build(4)
        };
        cache.get_or_build(&4, build).unwrap();
    } else {
        let _ = cache.remove(&3).wait_timeout(Duration::ZERO);
    }
    assert!(!armed.load(Ordering::SeqCst), "nothing was called inside {place}");
    drop(pin);
    assert!(cache.clear().wait_timeout(Duration::ZERO));
    assert_eq!((world.alive(), cache.statistics().release_failures), (0, 0));
}

#[test]
fn p5_waiting_inside_ones_own_cache_is_told_instead_of_hanging() {
    for place in ["build", "idle", "release"] {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = told.clone();
        inside(place, move |cache| {
            // What can be released is, and with nothing pending all is well.
            log.lock().unwrap().push(cache.remove(&2).wait());
            let drain = cache.remove(&1);
            assert!(!drain.wait_timeout(Duration::MAX));
            log.lock().unwrap().push(drain.wait());
        });
        let told = told.lock().unwrap();
        assert!(
            matches!(told[..], [Ok(()), Err(ReleaseError::WouldDeadlock)]),
            "inside {place}: {told:?}"
        );
    }
}

#[test]
fn p5_inside_another_cache_waiting_is_no_deadlock() {
    let world = World::default();
    let (lower, upper) = (world.cache(2), world.cache(2));
    let pin = lower.get_or_build(&1, || world.build(1)).unwrap();
    let drain = lower.clear();
    let gate = Gate::default();
    let dropper = {
        let gate = gate.clone();
        thread::spawn(move || {
            gate.pass();
            drop(pin);
        })
    };
    let built = upper.get_or_build(&1, || {
        gate.open();
        drain.wait().unwrap();
        world.build(1)
    });
    built.unwrap();
    dropper.join().unwrap();
}

#[test]
fn p5_every_drain_that_covers_a_value_sees_its_error() {
    let world = World::default();
    let device = DeviceId::new(Family::CUDA, 3);
    let sunk = Arc::new(Mutex::new(Vec::new()));
    let cache = {
        let sunk = sunk.clone();
        let sink = move |error: &ReleaseError| sunk.lock().unwrap().push(error.clone());
        world.builder().on_release_error(sink).build().unwrap()
    };
    world.fail_release(1);
    let pin = cache.on(&device).get_or_build(&1, || world.build(1)).unwrap();
    let drains = [cache.on(&device).remove(&1), cache.evict_device(&device)];
    let unread = cache.evict_device(&device);
    drop(pin);
    for drain in drains {
        assert_eq!((drain.released(), drain.pending()), (1, 0));
        assert_eq!(texts(&drain.errors()), ["1"]);
        assert_eq!(texts(&[drain.wait().unwrap_err()]), ["1"]);
    }
    drop(unread);
    // Somebody was shown it.
    assert_eq!(sunk.lock().unwrap().len(), 0);
}
