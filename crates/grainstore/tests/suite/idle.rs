//! Asking whether a value is idle: E7.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, Pinned};

use crate::common::{Module, World, check, failure, held_idle, parts};

/// A cache of this capacity whose `idle` is handed the cache, and the key it is asked about.
fn reentrant(
    capacity: usize,
    idle: impl Fn(&Cache<u64, Module>, u64) -> bool + Send + Sync + 'static,
) -> (World, Cache<u64, Module>) {
    let world = World::default();
    let myself: Arc<OnceLock<Cache<u64, Module>>> = Arc::default();
    let cache = {
        let (myself, release) = (myself.clone(), world.clone());
        Cache::<u64, Module>::builder()
            .capacity(capacity)
            .idle(move |module| idle(myself.get().unwrap(), module.key))
            .release(move |module| release.release(module))
            .build()
            .unwrap()
    };
    assert!(myself.set(cache.clone()).is_ok());
    (world, cache)
}

#[test]
fn e7_idle_may_call_the_cache() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = calls.clone();
    let (world, cache) = reentrant(2, move |cache, key| {
        seen.fetch_add(1, Ordering::SeqCst);
        let _ = (cache.len(), cache.statistics(), cache.get(&77), cache.reap());
        cache.poke();
        assert!(cache.remove(&99).wait_timeout(Duration::ZERO));
        assert!(!cache.wait_for_room(Duration::ZERO) || key != 0);
        assert!(cache.get(&key).is_some());
        true
    });
    world.fill(&cache, 1..=5);
    assert!(calls.load(Ordering::SeqCst) >= 3);
    assert_eq!(world.released(), [1, 2, 3]);
}

#[test]
fn e7_a_miss_inside_idle_is_refused_rather_than_hung() {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let log = answers.clone();
    let (world, cache) = reentrant(1, move |cache, _| {
        let answer = cache.get_or_build(&50, || Err(failure("there is no place for it")));
        log.lock().unwrap().push(answer.map(drop).unwrap_err());
        true
    });
    world.fill(&cache, 1..=2);
    assert_eq!(world.released(), [1]);
    let answers = answers.lock().unwrap();
    assert!(answers[0].is_busy(), "{answers:?}");
}

#[test]
fn e7_idle_may_evict_what_it_is_asked_about() {
    let (world, cache) = reentrant(1, |cache, key| {
        let drain = cache.remove(&key);
        assert!(!drain.wait_timeout(Duration::ZERO) || drain.released() == 0);
        true
    });
    world.fill(&cache, 1..=4);
    assert_eq!((world.released(), cache.len()), (vec![1, 2, 3], 1));
    check(&cache);
}

#[test]
fn e7_idle_may_clear_the_cache() {
    let (world, cache) = reentrant(3, |cache, _| {
        let _ = cache.clear().wait_timeout(Duration::ZERO);
        true
    });
    world.fill(&cache, 1..=8);
    assert_eq!(world.alive(), cache.len());
    check(&cache);
}

#[test]
fn e7_a_panic_in_idle_means_busy() {
    let (world, cache) = reentrant(2, |_, key| {
        assert!(key != 1, "no word on this one");
        true
    });
    world.fill(&cache, 1..=3);
    assert_eq!(world.released(), [2]);
    let drain = cache.clear();
    assert_eq!((drain.released(), drain.pending_keys()), (1, vec![1]));
}

#[test]
fn e7_a_pin_taken_while_idle_is_asked_wins() {
    let (world, gate, cache) = held_idle(1);
    world.fill(&cache, [1]);
    let miss = {
        let (cache, world) = (cache.clone(), world.clone());
        thread::spawn(move || cache.get_or_build(&2, || world.build(2)).map(drop))
    };
    gate.await_arrivals(1);
    let pin = cache.get(&1).expect("a value that is only asked about is still there");
    gate.open();
    assert_eq!(parts(&miss.join().unwrap().unwrap_err()), [1, 0, 0, 0]);
    assert_eq!((world.released(), pin.key), (vec![], 1));
}

#[test]
fn b9_what_another_thread_asks_about_is_gone_at_once_and_ended_by_that_thread() {
    for way in 0..3 {
        let (world, gate, cache) = held_idle(1);
        world.fill(&cache, [1]);
        let miss = {
            let (cache, world) = (cache.clone(), world.clone());
            thread::spawn(move || cache.get_or_build(&2, || world.build(2)).map(drop))
        };
        gate.await_arrivals(1);
        let drain = match way {
            0 => cache.remove(&1),
            1 => cache.clear(),
            _ => {
                drop(cache.remove(&1));
                cache.remove(&1)
            }
        };
        assert!(cache.get(&1).is_none());
        if way < 2 {
            assert_eq!((drain.released(), drain.pending_keys()), (0, vec![1]));
        }
        gate.open();
        miss.join().unwrap().unwrap();
        assert!(drain.wait_timeout(Duration::MAX));
        assert_eq!(world.released(), [1]);
        check(&cache);
    }
}

#[test]
fn e7_no_value_goes_on_an_answer_from_before_its_last_pin() {
    let (world, gate, cache) = held_idle(1);
    world.fill(&cache, [1]);
    let miss = {
        let (cache, world) = (cache.clone(), world.clone());
        thread::spawn(move || cache.get_or_build(&2, || world.build(2)).map(drop))
    };
    gate.await_arrivals(1);
    // Pinned and unpinned while the question is out: the answer is void, and it is asked again.
    drop(cache.get(&1).unwrap());
    gate.open();
    miss.join().unwrap().unwrap();
    assert_eq!(world.take_asked(), [1, 1]);
    assert_eq!(world.released(), [1]);
}

#[test]
fn e7_a_look_up_by_idle_of_its_own_value_is_neither_pin_nor_use() {
    let busy = Arc::new(AtomicBool::new(true));
    let flag = busy.clone();
    let (world, cache) = reentrant(3, move |cache, key| {
        assert_eq!(cache.get(&key).unwrap().key, key);
        let again = cache.get_or_build(&key, || Err(failure("it is there"))).unwrap();
        drop(again.clone());
        !flag.load(Ordering::SeqCst)
    });
    world.fill(&cache, 1..=3);
    assert_eq!(parts(&cache.get_or_build(&4, || world.build(4)).unwrap_err()), [0, 3, 0, 0]);
    // They were hits all the same.
    assert_eq!(cache.statistics().hits, 6);
    busy.store(false, Ordering::SeqCst);
    world.fill(&cache, 4..=6);
    // The questions above have changed nothing about the order.
    assert_eq!(world.released(), [1, 2, 3]);
}

/// Only the value that is asked about is apart: any other that `idle` looks up is used, whether the
/// thread has a slot for the pin or not.
#[test]
fn e7_a_look_up_by_idle_of_another_value_is_a_use() {
    for held in [0, 40] {
        let (world, cache) = reentrant(4, |cache, key| {
            drop(cache.get(&2));
            key != 2
        });
        world.fill(&cache, [9, 1, 2, 3]);
        let pins: Vec<_> = (0..=held).map(|_| cache.get(&9).unwrap()).collect();
        // The question about 1 is a use of 2, so that 3 is the next to be asked about.
        world.fill(&cache, [4, 5]);
        assert_eq!(world.released(), [1, 3]);
        assert_eq!(cache.statistics().hits, 3 + held);
        drop(pins);
    }
}

#[test]
fn e7_a_pin_that_idle_keeps_does_hold() {
    let kept: Arc<Mutex<Vec<Pinned<Module>>>> = Arc::default();
    let keep = kept.clone();
    let (world, cache) = reentrant(1, move |cache, key| {
        if let Some(pin) = cache.get(&key) {
            keep.lock().unwrap().push(pin);
        }
        true
    });
    world.fill(&cache, [1]);
    assert!(cache.get_or_build(&2, || world.build(2)).unwrap_err().is_busy());
    assert_eq!(kept.lock().unwrap()[0].key, 1);
    assert_eq!(world.released(), [0_u64; 0]);
    let pins = std::mem::take(&mut *kept.lock().unwrap());
    drop(pins);
}
