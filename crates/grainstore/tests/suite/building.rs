//! Single flight: B1 to B5, B7 to B9.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Error, Family, Ownership};

use crate::common::{Failure, Gate, Module, World, check, failure, parts};

/// Blocks until so many requests wait for a build.
fn await_waiters(cache: &Cache<u64, Module>, count: u64) {
    while cache.statistics().waits < count {
        thread::yield_now();
    }
}

#[test]
fn b1_eight_threads_at_once_cause_one_build() {
    let world = World::default();
    let cache = world.cache(4);
    let start = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (cache, world, start) = (cache.clone(), world.clone(), start.clone());
            thread::spawn(move || {
                start.wait();
                cache.get_or_build(&1, || world.build(1)).unwrap().key
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 1);
    }
    assert_eq!(world.made(), 1);
    let figures = cache.statistics();
    assert_eq!((figures.misses, figures.hits, figures.built), (1, 7, 1));
    check(&cache);
}

#[test]
fn b1_the_build_runs_on_the_thread_that_came_first_and_its_waiters_share_the_value() {
    let world = World::default();
    let cache = world.cache(4);
    let gate = Gate::default();
    let leader = {
        let (cache, world, gate) = (cache.clone(), world.clone(), gate.clone());
        thread::spawn(move || {
            let me = thread::current().id();
            cache.get_or_build(&1, || {
                assert_eq!(thread::current().id(), me);
                gate.pass();
                world.build(1)
            })
        })
    };
    gate.await_arrivals(1);
    let waiter = {
        let cache = cache.clone();
        thread::spawn(move || cache.get_or_build(&1, || Err(failure("not mine to build"))))
    };
    await_waiters(&cache, 1);
    // A build that runs holds no lock that any other call needs.
    assert!(cache.get(&1).is_none());
    assert_eq!(cache.len(), 0);
    assert_eq!(cache.statistics().building, 1);
    assert!(cache.get_or_build(&2, || world.build(2)).is_ok());
    gate.open();
    let built = leader.join().unwrap().unwrap();
    let shared = waiter.join().unwrap().unwrap();
    assert!(grainstore::Pinned::ptr_eq(&built, &shared));
    check(&cache);
}

#[test]
fn b2_a_build_may_build_another_key_of_the_same_cache() {
    let world = World::default();
    let cache = world.cache(300);
    // So many keys that some share whatever internal shard there is.
    let deep = cache.get_or_build(&0, || {
        for key in 1..200 {
            cache.get_or_build(&key, || world.build(key))?;
        }
        Ok::<_, Error>(world.make(0))
    });
    assert_eq!(deep.unwrap().key, 0);
    assert_eq!(cache.len(), 200);
}

#[test]
fn b2_keys_of_equal_hash_are_kept_apart() {
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Same(u32);
    impl std::hash::Hash for Same {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            state.write_u8(7);
        }
    }
    let cache = Cache::<Same, u32>::builder().capacity(50).build().unwrap();
    for n in 0..100 {
        let value = cache.get_or_build(&Same(n), || Ok::<_, Failure>(n)).unwrap();
        assert_eq!(*value, n);
    }
    for n in 50..100 {
        assert_eq!(*cache.get(&Same(n)).unwrap(), n);
    }
    assert!(cache.get(&Same(49)).is_none());
    assert_eq!(cache.len(), 50);
}

#[test]
fn b3_a_failure_reaches_all_and_leaves_nothing() {
    let world = World::default();
    let cache = world.cache(1);
    let gate = Gate::default();
    let leader = {
        let (cache, gate) = (cache.clone(), gate.clone());
        thread::spawn(move || {
            cache.get_or_build(&1, || {
                gate.pass();
                Err(failure("no such kernel"))
            })
        })
    };
    gate.await_arrivals(1);
    let waiter = {
        let (cache, world) = (cache.clone(), world.clone());
        thread::spawn(move || cache.get_or_build(&1, || world.build(1)))
    };
    await_waiters(&cache, 1);
    gate.open();
    for result in [leader.join().unwrap(), waiter.join().unwrap()] {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Build(_)));
        assert_eq!(error.downcast_ref::<Failure>().unwrap().to_string(), "no such kernel");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no such kernel");
    }
    let figures = cache.statistics();
    assert_eq!((figures.entries, figures.build_failures, figures.built), (0, 1, 0));
    assert_eq!(cache.get_or_build(&1, || world.build(1)).unwrap().key, 1);
    check(&cache);
}

#[test]
fn b3_busy_and_cycle_inside_a_build_arrive_as_build() {
    let world = World::default();
    let cache = world.cache(1);
    let error = cache
        .get_or_build(&1, || {
            cache.get_or_build(&2, || world.build(2))?;
            Ok::<_, Error>(world.make(1))
        })
        .unwrap_err();
    assert!(matches!(error, Error::Build(_)));
    assert!(matches!(error.downcast_ref::<Error>(), Some(Error::Busy { building: 1, .. })));
    assert_eq!(cache.len(), 0);
}

#[test]
fn b3_many_failures_leave_no_entry_behind() {
    let cache = Cache::<u64, u64>::builder().capacity(2).build().unwrap();
    for key in 0..100_000 {
        assert!(cache.get_or_build(&key, || Err::<u64, _>(failure("no"))).is_err());
    }
    let figures = cache.statistics();
    assert_eq!((figures.entries, figures.retired, figures.build_failures), (0, 0, 100_000));
    assert!(cache.get_or_build(&1, || Ok::<_, Failure>(1)).is_ok());
}

#[test]
fn b4_a_panic_is_an_error_for_all_and_poisons_nothing() {
    let world = World::default();
    let cache = world.cache(1);
    let gate = Gate::default();
    let leader = {
        let (cache, gate) = (cache.clone(), gate.clone());
        thread::spawn(move || {
            cache.get_or_build(&1, || -> Result<_, Failure> {
                gate.pass();
                panic!("compiler bug {}", 7)
            })
        })
    };
    gate.await_arrivals(1);
    let waiter = {
        let (cache, world) = (cache.clone(), world.clone());
        thread::spawn(move || cache.get_or_build(&1, || world.build(1)))
    };
    await_waiters(&cache, 1);
    gate.open();
    for result in [leader.join().unwrap(), waiter.join().unwrap()] {
        match result.unwrap_err() {
            Error::Panicked { message } => assert_eq!(message, "compiler bug 7"),
            other => panic!("{other:?}"),
        }
    }
    assert!(cache.get_or_build(&1, || world.build(1)).is_ok());
}

#[test]
fn b5_a_build_that_asks_for_itself_is_told() {
    let world = World::default();
    let cache = world.cache(4);
    let error = cache
        .get_or_build(&1, || {
            cache.get_or_build(&1, || world.build(1))?;
            Ok::<_, Error>(world.make(1))
        })
        .unwrap_err();
    assert!(matches!(error.downcast_ref::<Error>(), Some(Error::Cycle { .. })), "{error:?}");
    assert_eq!(cache.statistics().entries, 0);
}

#[test]
fn b5_a_cycle_through_two_threads_and_two_caches_is_told() {
    let left = Cache::<u64, u64>::builder().name("left").build().unwrap();
    let right = Cache::<u64, u64>::builder().name("right").build().unwrap();
    let both = Arc::new(Barrier::new(2));
    let build = |mine: Cache<u64, u64>, other: Cache<u64, u64>, both: Arc<Barrier>| {
        move || {
            mine.get_or_build(&1, || {
                both.wait();
                other.get_or_build(&1, || Ok::<_, Failure>(2)).map(|value| *value)
            })
            .map(|value| *value)
        }
    };
    let one = thread::spawn(build(left.clone(), right.clone(), both.clone()));
    let two = thread::spawn(build(right.clone(), left.clone(), both));
    let results = [one.join().unwrap(), two.join().unwrap()];
    // Whoever closed the circle got the cycle; the other got that one's failure.
    assert!(results.iter().all(Result::is_err), "{results:?}");
    let cycles = |error: &Error| {
        let mut error: &Error = error;
        while let Some(inner) = error.downcast_ref::<Error>() {
            error = inner;
        }
        matches!(error, Error::Cycle { .. })
    };
    assert!(results.iter().all(|result| cycles(result.as_ref().unwrap_err())), "{results:?}");
    assert_eq!(left.len() + right.len(), 0);
}

#[test]
fn b5_a_cycle_through_a_chain_of_threads_is_told() {
    // Five threads, each with a build that needs the next one's key.
    const LENGTH: u64 = 5;
    let cache = Cache::<u64, u64>::builder().build().unwrap();
    let all = Arc::new(Barrier::new(LENGTH as usize));
    let threads: Vec<_> = (0..LENGTH)
        .map(|key| {
            let (cache, all) = (cache.clone(), all.clone());
            thread::spawn(move || {
                let build = || {
                    all.wait();
                    let next = (key + 1) % LENGTH;
                    cache.get_or_build(&next, || Ok::<_, Failure>(next)).map(|value| *value)
                };
                cache.get_or_build(&key, build).map(drop)
            })
        })
        .collect();
    for thread in threads {
        let mut told = thread.join().unwrap().unwrap_err();
        // Whoever closed the circle got the cycle, and the others that one's failure.
        while let Some(inner) = told.downcast_ref::<Error>() {
            told = inner.clone();
        }
        assert!(matches!(told, Error::Cycle { .. }), "{told:?}");
    }
    assert_eq!(cache.statistics().entries, 0);
}

#[test]
fn b5_a_pin_held_while_another_key_is_built_crosswise_is_no_cycle() {
    let world = World::default();
    let cache = world.cache(4);
    let both = Arc::new(Barrier::new(2));
    let threads: Vec<_> = [(1, 2), (2, 1)]
        .into_iter()
        .map(|(mine, other)| {
            let (cache, world, both) = (cache.clone(), world.clone(), both.clone());
            thread::spawn(move || {
                let held = cache.get_or_build(&mine, || world.build(mine)).unwrap();
                both.wait();
                let second = cache.get_or_build(&other, || world.build(other)).unwrap();
                (held.key, second.key)
            })
        })
        .collect();
    let keys: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(keys, [(1, 2), (2, 1)]);
    assert_eq!(world.made(), 2);
}

#[test]
fn b5_a_release_that_asks_for_the_key_being_built_is_told() {
    let world = World::default();
    let slot: Arc<std::sync::OnceLock<Cache<u64, Module>>> = Arc::default();
    let seen = Arc::new(std::sync::Mutex::new(None));
    let cache = {
        let (slot, seen, world) = (slot.clone(), seen.clone(), world.clone());
        Cache::<u64, Module>::builder()
            .capacity(1)
            .release(move |module| {
                let cache = slot.get().unwrap();
                let answer = cache.get_or_build(&2, || Err(failure("never"))).map(drop);
                *seen.lock().unwrap() = Some(answer);
                world.release(module);
            })
            .build()
            .unwrap()
    };
    assert!(slot.set(cache.clone()).is_ok());
    cache.get_or_build(&1, || world.build(1)).unwrap();
    assert_eq!(cache.get_or_build(&2, || world.build(2)).unwrap().key, 2);
    let answer = seen.lock().unwrap().take();
    assert!(matches!(answer, Some(Err(Error::Cycle { .. }))), "{answer:?}");
}

/// Dooms a build of key 1 on `device` by `doom`, and checks what everybody gets.
fn doomed_build(
    ownership: Ownership,
    doom: impl FnOnce(&Cache<u64, Module>, &DeviceId) -> grainstore::Drain<u64>,
    is_reason: impl Fn(&Error) -> bool,
) {
    let world = World::default();
    let cache = world.builder().capacity(3).ownership(ownership).build().unwrap();
    let device = DeviceId::new(Family::CUDA, 0);
    let gate = Gate::default();
    let (result_of, results) = mpsc::channel();
    let leader = {
        let (cache, world, gate) = (cache.clone(), world.clone(), gate.clone());
        thread::spawn(move || {
            cache.on(&device).get_or_build(&1, || {
                gate.pass();
                world.build(1)
            })
        })
    };
    gate.await_arrivals(1);
    let waiter = {
        let (cache, world) = (cache.clone(), world.clone());
        thread::spawn(move || {
            let result = cache.on(&device).get_or_build(&1, || world.build(1));
            result_of.send(result.map(drop)).unwrap();
        })
    };
    await_waiters(&cache, 1);
    let drain = doom(&cache, &device);
    // The waiter is told at once, while the doomed build still runs.
    let told = results.recv_timeout(Duration::from_secs(30)).unwrap().unwrap_err();
    assert!(is_reason(&told), "{told:?}");
    assert_eq!((drain.pending(), drain.pending_keys()), (1, vec![1]));
    assert!(!drain.wait_timeout(Duration::ZERO));
    // Who comes now starts afresh, and the doomed build leaves that one alone.
    let fresh = cache.on(&device).get_or_build(&1, || world.build(1)).unwrap();
    gate.open();
    let error = leader.join().unwrap().unwrap_err();
    assert!(is_reason(&error), "{error:?}");
    drain.wait().unwrap();
    assert_eq!((world.made(), world.alive()), (2, 1));
    let found = cache.on(&device).get(&1).unwrap();
    assert!(grainstore::Pinned::ptr_eq(&fresh, &found));
    assert_eq!(cache.statistics().doomed, 1);
    waiter.join().unwrap();
    check(&cache);
}

#[test]
fn b7_an_evicted_device_dooms_its_builds() {
    doomed_build(
        Ownership::Owns,
        Cache::evict_device,
        |error| matches!(error, Error::DeviceDestroyed { device } if device.index() == 0),
    );
}

#[test]
fn b7_g2_clearing_a_borrowing_cache_dooms_its_builds() {
    doomed_build(Ownership::Borrows, |cache, _| cache.clear(), |e| matches!(e, Error::Cleared));
}

#[test]
fn b8_a_removal_dooms_the_build_of_its_key() {
    doomed_build(
        Ownership::Owns,
        |cache, device| cache.on(device).remove(&1),
        |error| matches!(error, Error::Removed),
    );
}

#[test]
fn g1_clearing_an_owning_cache_leaves_its_builds_alone() {
    let world = World::default();
    let cache = world.cache(2);
    let built = cache.get_or_build(&1, || {
        drop(cache.clear());
        world.build(1)
    });
    assert_eq!(built.unwrap().key, 1);
    assert!(cache.get(&1).is_some());
}

#[test]
fn b7_who_comes_later_is_busy_while_a_doomed_build_fills_the_capacity() {
    let world = World::default();
    let cache = world.cache(1);
    let mut drain = None;
    let doomed = cache.get_or_build(&1, || {
        drain = Some(cache.remove(&1));
        // Neither joined, which would be a cycle, nor built beside it, which would be one too many.
        let told = cache.get_or_build(&1, || world.build(1)).unwrap_err();
        assert_eq!(parts(&told), [0, 0, 1, 0]);
        world.build(1)
    });
    assert!(matches!(doomed, Err(Error::Removed)));
    assert_eq!((world.most_alive(), world.alive()), (1, 0));
    drain.unwrap().wait().unwrap();
    world.fill(&cache, [1]);
    check(&cache);
}

#[test]
fn b7_a_failing_release_does_not_mask_the_reason() {
    let cache =
        Cache::<u64, u64>::builder().release(|_| Err(failure("driver said no"))).build().unwrap();
    let mut drain = None;
    let error = cache.get_or_build(&1, || {
        drain = Some(cache.remove(&1));
        Ok::<_, Failure>(1)
    });
    assert!(matches!(error, Err(Error::Removed)));
    let error = drain.unwrap().wait().unwrap_err();
    assert_eq!(error.to_string(), "the release failed: driver said no");
    assert_eq!(cache.statistics().release_failures, 1);
}

#[test]
fn b9_what_is_idle_is_released_when_the_call_returns_on_the_calling_thread() {
    let released_on = Arc::new(std::sync::Mutex::new(Vec::new()));
    let cache = {
        let released_on = released_on.clone();
        Cache::<u64, u64>::builder()
            .release(move |value| released_on.lock().unwrap().push((value, thread::current().id())))
            .build()
            .unwrap()
    };
    for key in 0..3 {
        cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
    }
    let drain = cache.remove(&1);
    assert_eq!((drain.released(), drain.pending()), (1, 0));
    assert_eq!(*released_on.lock().unwrap(), [(1, thread::current().id())]);
    let drain = cache.clear();
    assert_eq!((drain.released(), drain.pending()), (2, 0));
    assert_eq!(cache.len(), 0);
}

#[test]
fn a_key_whose_eq_panics_harms_nobody_else() {
    static BAD: AtomicUsize = AtomicUsize::new(0);
    #[derive(Clone, Eq)]
    struct Touchy(u64);
    impl std::hash::Hash for Touchy {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    impl PartialEq for Touchy {
        fn eq(&self, other: &Self) -> bool {
            assert!(BAD.load(Ordering::SeqCst) == 0, "touchy");
            self.0 == other.0
        }
    }
    let cache = Cache::<Touchy, u64>::builder().capacity(2).build().unwrap();
    cache.get_or_build(&Touchy(1), || Ok::<_, Failure>(1)).unwrap();
    BAD.store(1, Ordering::SeqCst);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cache.get_or_build(&Touchy(1), || Ok::<_, Failure>(2)).map(drop)
    }));
    assert!(caught.is_err());
    BAD.store(0, Ordering::SeqCst);
    assert_eq!(*cache.get_or_build(&Touchy(1), || Ok::<_, Failure>(3)).unwrap(), 1);
    assert_eq!(cache.clear().released(), 1);
}
