//! The bound, the order of use and `Busy`: E1 to E4, E6.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Family};

use crate::common::{Failure, Gate, Module, World, check, failure, held_idle, parts};

/// Keys that are resident, of those asked for. Looks through a clone of nothing: a look-up is a use.
fn resident(cache: &Cache<u64, Module>, keys: std::ops::Range<u64>) -> Vec<u64> {
    keys.filter(|key| cache.get(key).is_some()).collect()
}

#[test]
fn e1_capacities_of_one_and_three_hold_just_so_many() {
    for capacity in [1, 3] {
        let world = World::default();
        let cache = world.cache(capacity);
        world.fill(&cache, 0..20);
        assert_eq!(
            (cache.len(), world.alive(), world.most_alive()),
            (capacity, capacity, capacity)
        );
        assert_eq!(cache.statistics().evictions, 20 - capacity as u64);
        check(&cache);
    }
}

#[test]
fn e1_threads_that_hold_one_value_each_always_find_a_place_among_as_many() {
    const THREADS: u64 = 4;
    let world = World::default();
    let cache = world.cache(THREADS as usize);
    let start = Arc::new(Barrier::new(THREADS as usize));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (cache, world, start) = (cache.clone(), world.clone(), start.clone());
            thread::spawn(move || {
                start.wait();
                for round in 0..3_000 {
                    let key = (round * 7 + thread * 3) % 11;
                    let pin = cache.get_or_build(&key, || world.build(key)).unwrap();
                    assert_eq!(pin.key, key);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(world.most_alive() <= THREADS as usize, "{}", world.most_alive());
    check(&cache);
}

#[test]
fn e1_the_same_where_nothing_asks_whether_a_value_is_idle() {
    const THREADS: u64 = 4;
    let alive = Arc::new(AtomicUsize::new(0));
    let cache = {
        let alive = alive.clone();
        let release = move |_| {
            alive.fetch_sub(1, Ordering::SeqCst);
        };
        Cache::<u64, u64>::builder().capacity(THREADS as usize).release(release).build().unwrap()
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (cache, alive) = (cache.clone(), alive.clone());
            thread::spawn(move || {
                for round in 0..5_000 {
                    let key = (round * 7 + thread * 3) % 11;
                    let build = || {
                        let now = alive.fetch_add(1, Ordering::SeqCst) + 1;
                        assert!(now <= THREADS as usize, "{now} alive");
                        Ok::<_, Failure>(key)
                    };
                    assert_eq!(*cache.get_or_build(&key, build).unwrap(), key);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    check(&cache);
}

#[test]
fn e1_a_place_is_taken_until_the_release_has_returned() {
    let world = World::default();
    let gate = Gate::default();
    let cache = {
        let (world, gate) = (world.clone(), gate.clone());
        Cache::<u64, Module>::builder()
            .capacity(1)
            .release(move |module| {
                gate.pass();
                world.release(module);
            })
            .build()
            .unwrap()
    };
    world.fill(&cache, [1]);
    let evictor = {
        let (cache, world) = (cache.clone(), world.clone());
        thread::spawn(move || cache.get_or_build(&2, || world.build(2)).map(|pin| pin.key))
    };
    gate.await_arrivals(1);
    // Nobody slips into the place of the victim, neither now nor between its release and the build.
    let error = cache.get_or_build(&3, || world.build(3)).unwrap_err();
    assert_eq!(parts(&error), [0, 0, 0, 1]);
    gate.open();
    assert_eq!(evictor.join().unwrap().unwrap(), 2);
    assert_eq!(world.most_alive(), 1);
}

#[test]
fn e2_the_victim_is_the_least_recently_used() {
    let world = World::default();
    let cache = world.cache(3);
    world.fill(&cache, 1..=3);
    // By either kind of hit.
    assert!(cache.get(&1).is_some());
    cache.get_or_build(&2, || Err(failure("it is there"))).unwrap();
    world.fill(&cache, [4]);
    assert_eq!(world.released(), [3]);
    world.fill(&cache, [5]);
    assert_eq!(world.released(), [3, 1]);
    world.fill(&cache, [6]);
    assert_eq!(world.released(), [3, 1, 2]);
}

#[test]
fn e2_a_clone_and_an_unpin_are_no_use() {
    let world = World::default();
    let cache = world.cache(3);
    world.fill(&cache, [1]);
    let one = cache.get(&1).unwrap();
    world.fill(&cache, [2, 3]);
    let clone = one.clone();
    drop(one);
    drop(clone);
    world.fill(&cache, [4]);
    assert_eq!(world.released(), [1]);
}

/// A thread has slots for a few pins; a hit beyond them is as good a use as any.
#[test]
fn e2_a_hit_is_a_use_however_many_pins_its_thread_holds() {
    let world = World::default();
    let cache = world.cache(4);
    world.fill(&cache, [9, 1, 2, 3]);
    let pins: Vec<_> = (0..40).map(|_| cache.get(&9).unwrap()).collect();
    let hits = cache.statistics().hits;
    drop(cache.get(&1));
    assert_eq!(cache.statistics().hits, hits + 1);
    world.fill(&cache, [4, 5]);
    assert_eq!(world.released(), [2, 3]);
    drop(pins);
}

#[test]
fn e2_a_value_that_was_pinned_in_a_search_comes_back_to_its_place_in_the_order() {
    let world = World::default();
    let cache = world.cache(3);
    world.fill(&cache, 1..=3);
    let (two, one) = (cache.get(&2).unwrap(), cache.get(&1).unwrap());
    // Order now: 3, 2, 1. The search finds 3, then later one walks past both pinned ones.
    world.fill(&cache, [4]);
    world.fill(&cache, [5]);
    assert_eq!(world.released(), [3, 4]);
    drop(one);
    drop(two);
    // 2 was used before 1, and 5 after both.
    world.fill(&cache, [6, 7, 8]);
    assert_eq!(world.released(), [3, 4, 2, 1, 5]);
}

#[test]
fn e2_busy_and_pinned_values_are_passed_over() {
    let world = World::default();
    let cache = world.cache(4);
    world.fill(&cache, 1..=4);
    world.set_busy(1, true);
    world.set_busy(3, true);
    let two = cache.get(&2).unwrap();
    world.fill(&cache, [5]);
    assert_eq!(world.released(), [4]);
    world.set_busy(3, false);
    world.fill(&cache, [6]);
    drop(two);
    assert_eq!(world.released(), [4, 3]);
    assert_eq!(resident(&cache, 0..10), [1, 2, 5, 6]);
}

#[test]
fn e2_the_install_is_a_use_not_the_start_of_the_build() {
    let world = World::default();
    let cache = world.cache(3);
    // 1 starts first and is installed last.
    cache
        .get_or_build(&1, || {
            world.fill(&cache, [2, 3]);
            world.build(1)
        })
        .unwrap();
    world.fill(&cache, [4]);
    assert_eq!(world.released(), [2]);
}

#[test]
fn e3_the_victim_is_released_before_the_build_starts_and_on_its_thread() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let cache = {
        let log = log.clone();
        Cache::<u64, u64>::builder()
            .capacity(1)
            .release(move |key| log.lock().unwrap().push(("release", key, thread::current().id())))
            .build()
            .unwrap()
    };
    for key in 1..=2 {
        cache
            .get_or_build(&key, || {
                log.lock().unwrap().push(("build", key, thread::current().id()));
                Ok::<_, Failure>(key)
            })
            .unwrap();
    }
    let me = thread::current().id();
    assert_eq!(*log.lock().unwrap(), [("build", 1, me), ("release", 1, me), ("build", 2, me)]);
}

#[test]
fn e4_busy_names_what_fills_the_cache() {
    let world = World::default();
    let cache = world.cache(5);
    world.fill(&cache, 1..=4);
    world.set_busy(3, true);
    world.set_busy(4, true);
    let pins = [cache.get(&1).unwrap(), cache.get(&2).unwrap()];
    let drain = cache.remove(&2);
    let outer = cache.get_or_build(&5, || {
        let error = cache.get_or_build(&6, || world.build(6)).unwrap_err();
        assert_eq!(parts(&error), [1, 2, 1, 1]);
        world.build(5)
    });
    outer.unwrap();
    let figures = cache.statistics();
    assert_eq!((figures.refused, figures.misses, figures.evictions), (1, 5, 0));
    assert_eq!((figures.retired, drain.pending()), (1, 1));
    // Nothing was left behind, and nothing was evicted for it.
    assert_eq!(resident(&cache, 0..10), [1, 3, 4, 5]);
    drop(pins);
    assert_eq!((drain.released(), drain.pending()), (1, 0));
    check(&cache);
}

#[test]
fn e4_busy_is_told_at_once_to_those_who_joined_as_well() {
    let world = World::default();
    let cache = world.cache(1);
    let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (cache, world) = (cache.clone(), world.clone());
            thread::spawn(move || cache.get_or_build(&2, || world.build(2)).map(drop))
        })
        .collect();
    for thread in threads {
        assert_eq!(parts(&thread.join().unwrap().unwrap_err()), [1, 0, 0, 0]);
    }
    drop(pin);
    world.fill(&cache, [2]);
    assert_eq!(world.released(), [1]);
}

#[test]
fn e4_a_miss_waits_for_an_answer_that_somebody_is_asking_for() {
    for idle in [true, false] {
        let (world, gate, cache) = held_idle(2);
        world.fill(&cache, [1]);
        world.set_busy(1, !idle);
        let pin = cache.get_or_build(&2, || world.build(2)).unwrap();
        let (results_of, results) = mpsc::channel();
        let threads: Vec<_> = [3, 4]
            .into_iter()
            .map(|key| {
                let (cache, world, results) = (cache.clone(), world.clone(), results_of.clone());
                let thread = thread::spawn(move || {
                    let result = cache.get_or_build(&key, || world.build(key));
                    results.send(key).unwrap();
                    result
                });
                if key == 3 {
                    gate.await_arrivals(1);
                }
                thread
            })
            .collect();
        // The second is neither refused nor served while the first one asks.
        assert!(results.recv_timeout(Duration::from_millis(50)).is_err());
        gate.open();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let served = results.iter().filter(|result| result.is_ok()).count();
        if idle {
            // One got the place; the other found everything pinned, or the first value again idle.
            assert!(served >= 1, "{results:?}");
        } else {
            assert_eq!(served, 0);
            assert!(results.iter().all(|result| parts(result.as_ref().unwrap_err())[1] == 1));
        }
        drop((pin, results));
        assert_eq!(world.most_alive(), 2);
        check(&cache);
    }
}

#[test]
fn e4_many_threads_on_few_places_meet_busy_only_when_it_is_true() {
    // Each holds at most one value; an `idle` that takes its time is asked by all of them at once.
    const THREADS: u64 = 3;
    let world = World::default();
    let cache = {
        let (idle, release) = (world.clone(), world.clone());
        Cache::<u64, Module>::builder()
            .capacity(THREADS as usize)
            .idle(move |module| {
                thread::yield_now();
                idle.is_idle(module)
            })
            .release(move |module| {
                thread::yield_now();
                release.release(module);
            })
            .build()
            .unwrap()
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (cache, world) = (cache.clone(), world.clone());
            thread::spawn(move || {
                for round in 0..1_500 {
                    let key = (round * 5 + thread * 2) % 7;
                    let pin = cache.get_or_build(&key, || world.build(key));
                    assert!(pin.is_ok(), "{pin:?} in round {round}");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(world.most_alive() <= THREADS as usize);
}

#[test]
fn e6_a_victim_costs_as_many_questions_in_a_large_cache_as_in_a_small_one() {
    for capacity in [100_u64, 20_000] {
        let world = World::default();
        let cache = world.cache(capacity as usize);
        world.fill(&cache, 0..capacity);
        // All but ten are pinned, and those ten are the most recently used.
        let pins: Vec<_> = (0..capacity - 10).map(|key| cache.get(&key).unwrap()).collect();
        for key in capacity - 10..capacity {
            assert!(cache.get(&key).is_some());
        }
        world.take_asked();
        world.fill(&cache, capacity..capacity + 100);
        assert_eq!(world.take_asked().len(), 100);
        drop(pins);
        world.fill(&cache, capacity + 100..capacity + 200);
        assert_eq!(world.take_asked().len(), 100);
        check(&cache);
    }
}

#[test]
fn e6_only_busy_values_cost_more_and_each_is_asked_once_a_miss() {
    let world = World::default();
    let cache = world.cache(50);
    world.fill(&cache, 0..50);
    (0..49).for_each(|key| world.set_busy(key, true));
    world.take_asked();
    world.fill(&cache, [50]);
    assert_eq!(world.take_asked(), (0..50).collect::<Vec<_>>());
    world.set_busy(50, true);
    assert_eq!(parts(&cache.get_or_build(&51, || world.build(51)).unwrap_err()), [0, 50, 0, 0]);
    assert_eq!(world.take_asked().len(), 50);
}

#[test]
fn a_bound_counts_values_of_all_devices_together() {
    let world = World::default();
    let cache = world.cache(2);
    for index in 0..5 {
        let device = DeviceId::new(Family::CUDA, index);
        cache.on(&device).get_or_build(&1, || world.build(1)).unwrap();
    }
    assert_eq!((cache.len(), world.most_alive()), (2, 2));
}
