//! What caches of the field got wrong, each as a case of its own that must come out right.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Drain, Error, Family, Ownership, Pinned, ReleaseError};

use crate::common::{Failure, Gate, Module, World, check, failure};

const DEVICE: DeviceId = DeviceId::new(Family::CUDA, 0);

fn await_waiters<V: Send + Sync + 'static>(cache: &Cache<u64, V>, count: u64) {
    while cache.statistics().waits < count {
        thread::yield_now();
    }
}

#[test]
fn a_panic_in_a_build_while_others_wait() {
    let world = World::default();
    let cache = world.cache(1);
    for round in 1..=20 {
        let gate = Gate::default();
        let leader = {
            let (cache, gate) = (cache.clone(), gate.clone());
            thread::spawn(move || {
                let build = || -> Result<Module, Failure> {
                    gate.pass();
                    panic!("the compiler crashed")
                };
                cache.get_or_build(&1, build).map(drop)
            })
        };
        gate.await_arrivals(1);
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let (cache, world) = (cache.clone(), world.clone());
                thread::spawn(move || cache.get_or_build(&1, || world.build(1)).map(drop))
            })
            .collect();
        await_waiters(&cache, 3 * round);
        gate.open();
        for thread in waiters.into_iter().chain([leader]) {
            let told = thread.join().expect("nothing unwinds out of the cache").unwrap_err();
            assert!(
                matches!(told, Error::Panicked { message } if message == "the compiler crashed")
            );
        }
    }
    world.fill(&cache, [1]);
    check(&cache);
}

/// A panic's payload, or an error, whose own end or conversion panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("and again");
    }
}

impl From<Bomb> for Box<dyn std::error::Error + Send + Sync> {
    fn from(bomb: Bomb) -> Self {
        drop(bomb);
        unreachable!("its drop panics")
    }
}

#[test]
fn a_panic_whose_payload_panics() {
    let cache = Cache::<u64, u64>::builder().capacity(1).build().unwrap();
    let gate = Gate::default();
    let leader = {
        let (cache, gate) = (cache.clone(), gate.clone());
        thread::spawn(move || {
            let build = || -> Result<u64, Failure> {
                gate.pass();
                panic_any(Bomb)
            };
            cache.get_or_build(&1, build).map(drop)
        })
    };
    gate.await_arrivals(1);
    let waiter = {
        let cache = cache.clone();
        thread::spawn(move || cache.get_or_build(&1, || Ok::<_, Failure>(1)).map(drop))
    };
    await_waiters(&cache, 1);
    gate.open();
    for thread in [leader, waiter] {
        let told = thread.join().expect("nothing unwinds out of the cache");
        assert!(matches!(told, Err(Error::Panicked { .. })), "{told:?}");
    }
    assert_eq!(cache.statistics().building, 0);
}

#[test]
fn an_error_that_panics_when_it_is_boxed() {
    let cache = Cache::<u64, u64>::builder().capacity(1).build().unwrap();
    let told = cache.get_or_build(&1, || Err::<u64, _>(Bomb));
    assert!(matches!(told, Err(Error::Panicked { .. })), "{told:?}");
    assert!(cache.get_or_build(&2, || Ok::<_, Failure>(2)).is_ok());
}

#[test]
fn callbacks_whose_panics_panic() {
    let cache = Cache::<u64, u64>::builder()
        .capacity(2)
        .idle(|value| if *value == 1 { panic_any(Bomb) } else { true })
        .release(|value| {
            if value == 3 {
                panic_any(Bomb)
            }
        })
        .on_release_error(|_| panic_any(Bomb))
        .build()
        .unwrap();
    for key in 1..=6 {
        cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
    }
    let drain = cache.clear();
    assert_eq!((drain.released(), drain.pending()), (1, 1));
    assert_eq!(cache.statistics().release_failures, 1);
}

#[test]
fn clear_right_after_install() {
    for ownership in [Ownership::Owns, Ownership::Borrows] {
        let world = World::default();
        let cache = world.builder().capacity(4).ownership(ownership).build().unwrap();
        let both = Arc::new(Barrier::new(2));
        let builder = {
            let (cache, world, both) = (cache.clone(), world.clone(), both.clone());
            thread::spawn(move || {
                for _ in 0..2_000 {
                    both.wait();
                    match cache.get_or_build(&1, || world.build(1)) {
                        Ok(pin) => assert_eq!(pin.key, 1),
                        Err(error) => assert!(matches!(error, Error::Cleared), "{error}"),
                    }
                    both.wait();
                    // The clear is over, whatever it met: nothing older than it is there.
                    let _ = cache.clear().wait();
                    assert!(cache.get(&1).is_none());
                    both.wait();
                }
            })
        };
        for _ in 0..2_000 {
            both.wait();
            drop(cache.clear());
            both.wait();
            both.wait();
        }
        builder.join().unwrap();
        assert_eq!(world.alive(), 0);
        check(&cache);
    }
}

/// What invalidates a value during its load.
type Invalidate = fn(&Cache<u64, Module>) -> Drain<u64>;

#[test]
fn invalidation_during_a_load_of_every_kind() {
    let kinds: [(&str, Invalidate); 4] = [
        ("remove", |cache| cache.on(&DEVICE).remove(&1)),
        ("evict_device", |cache| cache.evict_device(&DEVICE)),
        ("clear", Cache::clear),
        ("remove, then clear", |cache| {
            drop(cache.on(&DEVICE).remove(&1));
            cache.clear()
        }),
    ];
    for (name, invalidate) in kinds {
        let world = World::default();
        let cache = world.builder().capacity(3).ownership(Ownership::Borrows).build().unwrap();
        let gate = Gate::default();
        let loader = {
            let (cache, world, gate) = (cache.clone(), world.clone(), gate.clone());
            thread::spawn(move || {
                let build = || {
                    let stale = world.build(1);
                    gate.pass();
                    stale
                };
                cache.on(&DEVICE).get_or_build(&1, build).map(drop)
            })
        };
        gate.await_arrivals(1);
        drop(invalidate(&cache));
        // Neither now nor when the load ends is what it read before to be seen.
        assert!(cache.on(&DEVICE).get(&1).is_none(), "{name}");
        let fresh = cache.on(&DEVICE).get_or_build(&1, || world.build(1)).unwrap();
        assert_eq!(fresh.serial, 2, "{name}");
        gate.open();
        assert!(loader.join().unwrap().is_err(), "{name}");
        let found = cache.on(&DEVICE).get(&1).unwrap();
        assert!(Pinned::ptr_eq(&found, &fresh), "{name}");
        assert_eq!(world.alive(), 1, "{name}");
        check(&cache);
    }
}

#[test]
fn invalidations_and_loads_without_end_never_serve_what_was_invalidated() {
    // A version that is raised before each invalidation: whoever asks after it must not see less.
    let version = Arc::new(AtomicUsize::new(0));
    let cache = Cache::<u64, usize>::builder().ownership(Ownership::Borrows).build().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (cache, version, done) = (cache.clone(), version.clone(), done.clone());
            thread::spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    let build = || Ok::<_, Failure>(version.load(Ordering::SeqCst));
                    drop(cache.on(&DEVICE).get_or_build(&1, build));
                }
            })
        })
        .collect();
    for round in 1..=4_000 {
        version.store(round, Ordering::SeqCst);
        drop(match round % 3 {
            0 => cache.on(&DEVICE).remove(&1),
            1 => cache.evict_device(&DEVICE),
            _ => cache.clear(),
        });
        if let Some(found) = cache.on(&DEVICE).get(&1) {
            assert_eq!(*found, round);
        }
        let build = || Ok::<_, Failure>(version.load(Ordering::SeqCst));
        assert_eq!(*cache.on(&DEVICE).get_or_build(&1, build).unwrap(), round);
    }
    done.store(true, Ordering::SeqCst);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

#[test]
fn a_release_that_inserts_into_its_own_cache() {
    let myself: Arc<OnceLock<Cache<u64, u64>>> = Arc::default();
    let inserted = Arc::new(AtomicUsize::new(0));
    let cache = {
        let (myself, inserted) = (myself.clone(), inserted.clone());
        Cache::<u64, u64>::builder()
            .capacity(4)
            .release(move |key| {
                // The evicted goes to a second life under another key, if there is room.
                let next = key + 1_000;
                if next < 3_000
                    && myself.get().unwrap().get_or_build(&next, || Ok::<_, Failure>(next)).is_ok()
                {
                    inserted.fetch_add(1, Ordering::SeqCst);
                }
            })
            .build()
            .unwrap()
    };
    assert!(myself.set(cache.clone()).is_ok());
    let threads: Vec<_> =
        (0..3)
            .map(|thread| {
                let cache = cache.clone();
                thread::spawn(move || {
                    for key in 0..300 {
                        drop(cache.get_or_build(&(key * 3 + thread), || {
                            Ok::<_, Failure>(key * 3 + thread)
                        }));
                        assert!(cache.len() <= 4);
                    }
                })
            })
            .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(inserted.load(Ordering::SeqCst) > 0);
    assert_eq!(cache.statistics().release_failures, 0);
    check(&cache);
}

#[test]
fn a_release_that_panics_and_later_ones_still_run() {
    let calls = Arc::new(AtomicUsize::new(0));
    let cache = {
        let calls = calls.clone();
        Cache::<u64, u64>::builder()
            .capacity(1)
            .release(move |key| {
                calls.fetch_add(1, Ordering::SeqCst);
                assert!(key != 0, "the first one panics");
            })
            .build()
            .unwrap()
    };
    for key in 0..10 {
        cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
    }
    cache.clear().wait().unwrap();
    assert_eq!((calls.load(Ordering::SeqCst), cache.statistics().release_failures), (10, 1));
}

#[test]
fn a_cache_dropped_with_values_in_it() {
    let world = World::default();
    let cache = world.builder().build().unwrap();
    world.fill(&cache, 0..1_000);
    world.set_busy(7, true);
    drop(cache);
    assert_eq!((world.alive(), world.released().len()), (0, 1_000));
    // Without a release of its own, a value is dropped.
    let value = Arc::new(());
    let cache = Cache::<u64, Arc<()>>::builder().build().unwrap();
    for key in 0..5 {
        cache.get_or_build(&key, || Ok::<_, Failure>(value.clone())).unwrap();
    }
    assert_eq!(Arc::strong_count(&value), 6);
    drop(cache);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_capacity_of_three_holds_three_and_one_holds_one() {
    for capacity in [1, 3] {
        let cache = Cache::<u64, u64>::builder().capacity(capacity).build().unwrap();
        for key in 0..capacity as u64 {
            cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
        }
        for _ in 0..3 {
            for key in 0..capacity as u64 {
                assert!(cache.get(&key).is_some(), "{key} of {capacity}");
            }
        }
        assert_eq!(cache.statistics().evictions, 0);
    }
}

/// A key that shares its hash with all others of its kind, or with every tenth.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Alike(u64, u64);

impl Hash for Alike {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0 % self.1);
    }
}

#[test]
fn keys_of_the_same_hash_under_many_threads() {
    for kinds in [1, 10] {
        let cache = Cache::<Alike, u64>::builder().capacity(16).build().unwrap();
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let cache = cache.clone();
                thread::spawn(move || {
                    for round in 0..2_000 {
                        let key = Alike((round * 7 + thread * 5) % 24, kinds);
                        let found = cache.get_or_build(&key, || Ok::<_, Failure>(key.0)).unwrap();
                        assert_eq!(*found, key.0);
                        if round % 50 == 0 {
                            drop(cache.remove(&key));
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        check(&cache);
    }
}

#[test]
fn a_build_inside_a_build_where_both_share_all_there_is_to_share() {
    // One hash for all keys: whatever is split by hash is shared.
    let cache = Cache::<Alike, u64>::builder().build().unwrap();
    fn build(cache: &Cache<Alike, u64>, depth: u64) -> Result<u64, Error> {
        if depth == 0 {
            return Ok(0);
        }
        Ok(1 + *cache.get_or_build(&Alike(depth - 1, 1), || build(cache, depth - 1))?)
    }
    let found = cache.get_or_build(&Alike(40, 1), || build(&cache, 40)).unwrap();
    assert_eq!((*found, cache.len()), (40, 41));
}

#[test]
fn pins_held_crosswise_while_another_key_is_built() {
    let world = World::default();
    let cache = world.cache(2);
    for _ in 0..200 {
        let both = Arc::new(Barrier::new(2));
        let threads = [(1, 2), (2, 1)].map(|(mine, other)| {
            let (cache, world, both) = (cache.clone(), world.clone(), both.clone());
            thread::spawn(move || {
                let held = cache.get_or_build(&mine, || world.build(mine)).unwrap();
                both.wait();
                // Both are pinned: one more key is refused at once, and those that are there, are.
                assert!(cache.get_or_build(&3, || world.build(3)).unwrap_err().is_busy());
                assert_eq!(cache.get_or_build(&other, || world.build(other)).unwrap().key, other);
                both.wait();
                held.key
            })
        });
        assert_eq!(threads.map(|thread| thread.join().unwrap()), [1, 2]);
    }
}

#[test]
fn a_teardown_whose_reader_never_lets_go() {
    let world = World::default();
    let cache = world.cache(3);
    let stuck = cache.on(&DEVICE).get_or_build(&1, || world.build(1)).unwrap();
    cache.on(&DEVICE).get_or_build(&2, || world.build(2)).unwrap();
    std::mem::forget(stuck.clone());
    let drain = cache.evict_device(&DEVICE);
    assert!(!drain.wait_timeout(Duration::from_millis(20)));
    assert_eq!((drain.released(), drain.pending_keys()), (1, vec![1]));
    // It may be called again, and be given up in the end; then the device's life begins anew.
    let again = cache.evict_device(&DEVICE);
    assert!(!again.wait_timeout(Duration::ZERO));
    assert_eq!(again.abandon(), 1);
    assert!(drain.wait_timeout(Duration::ZERO));
    for key in 1..=3 {
        cache.on(&DEVICE).get_or_build(&key, || world.build(key)).unwrap();
    }
    assert_eq!((stuck.key, cache.len()), (1, 3));
    check(&cache);
}

#[test]
fn idle_plans_above_a_full_cache_of_kernels_under_many_threads() {
    let world = World::default();
    let kernels = world.cache(4);
    let plans: Cache<u64, Vec<Pinned<Module>>> =
        Cache::builder().capacity(64).borrows_from(&kernels).build().unwrap();
    let threads: Vec<_> = (0..2)
        .map(|thread| {
            let (world, kernels, plans) = (world.clone(), kernels.clone(), plans.clone());
            thread::spawn(move || {
                for round in 0..1_000 {
                    let key = (round * 3 + thread) % 16;
                    // Each holds two kernels at most, so that idle plans alone are ever in the way. One
                    // may meet a place on its way from a plan to the other thread, and asks again.
                    let plan = loop {
                        let plan = plans.get_or_build(&key, || {
                            [key, key + 1]
                                .iter()
                                .map(|key| kernels.get_or_build(key, || world.build(*key)))
                                .collect::<Result<Vec<_>, _>>()
                        });
                        match plan {
                            Ok(plan) => break plan,
                            Err(error) => {
                                let inner = error.downcast_ref::<Error>();
                                assert!(inner.is_some_and(Error::is_busy), "{error}");
                                assert!(kernels.wait_for_room(Duration::from_secs(20)));
                            }
                        }
                    };
                    let keys: Vec<_> = plan.iter().map(|kernel| kernel.key).collect();
                    assert_eq!(keys, [key, key + 1]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(world.most_alive() <= 4);
    check(&kernels);
    check(&plans);
}

#[test]
fn a_value_that_owns_a_handle_of_another_cache() {
    let lower = Cache::<u64, Arc<()>>::builder().build().unwrap();
    let token = Arc::new(());
    lower.get_or_build(&1, || Ok::<_, Failure>(token.clone())).unwrap();
    let upper = Cache::<u64, Cache<u64, Arc<()>>>::builder().build().unwrap();
    upper.get_or_build(&1, || Ok::<_, Failure>(lower.clone())).unwrap();
    drop(lower);
    assert_eq!(Arc::strong_count(&token), 2);
    // The end of the upper is the end of the lower.
    drop(upper);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn a_lookup_of_a_borrowed_kind_of_thread_local_end() {
    // A thread's end runs code that asks the cache, when what the cache keeps for it may be gone.
    struct AtEnd(Cache<u64, u64>, Arc<Mutex<Vec<u64>>>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            let pin = self.0.get_or_build(&1, || Ok::<_, Failure>(1)).unwrap();
            let built = self.0.get_or_build(&2, || Ok::<_, Failure>(2)).unwrap();
            drop(self.0.remove(&2));
            self.1.lock().unwrap().extend([*pin, *built]);
        }
    }
    thread_local! {
        static AT_END: std::cell::RefCell<Option<AtEnd>> = const { std::cell::RefCell::new(None) };
    }
    let cache = Cache::<u64, u64>::builder().capacity(4).build().unwrap();
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    for first in [true, false] {
        let (cache, seen) = (cache.clone(), seen.clone());
        thread::spawn(move || {
            // Registered before what the cache registers, and after.
            if first {
                AT_END.set(Some(AtEnd(cache.clone(), seen.clone())));
            }
            drop(cache.get_or_build(&1, || Ok::<_, Failure>(1)).unwrap());
            AT_END.set(Some(AtEnd(cache, seen)));
        })
        .join()
        .unwrap();
    }
    assert!(seen.lock().unwrap().len() >= 4);
    let figures = cache.statistics();
    // Three ends, each with a hit and a build, and before them a build and a hit.
    assert_eq!((figures.hits, figures.misses, figures.retired), (4, 4, 0));
    check(&cache);
}

#[test]
fn errors_are_cloned_to_all_and_reach_the_original() {
    #[derive(Debug)]
    struct Log(HashMap<&'static str, u32>);
    impl std::fmt::Display for Log {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{} messages", self.0.len())
        }
    }
    impl std::error::Error for Log {}
    let cache = Cache::<u64, u64>::builder().build().unwrap();
    let told = cache.get_or_build(&1, || Err::<u64, _>(Log([("saxpy.cl", 3)].into()))).unwrap_err();
    let clone = told.clone();
    drop(told);
    assert_eq!(clone.downcast_ref::<Log>().unwrap().0["saxpy.cl"], 3);
    // Whatever can be boxed will do: text, and boxed errors.
    let told = cache.get_or_build(&1, || Err::<u64, _>("no driver")).unwrap_err();
    assert!(told.to_string().ends_with("no driver"), "{told}");
    let boxed = || Err::<u64, Box<dyn std::error::Error + Send + Sync>>(Box::new(failure("gone")));
    assert!(cache.get_or_build(&1, boxed).unwrap_err().downcast_ref::<Failure>().is_some());
    let released = ReleaseError::Failed(Arc::new(failure("stuck")));
    assert!(released.clone().downcast_ref::<Failure>().is_some());
}
