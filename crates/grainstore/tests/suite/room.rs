//! Waiting for room, and poking those who wait: the second half of E4.

use std::thread;
use std::time::Duration;

use crate::common::{Gate, World, failure};

#[test]
fn room_is_there_at_once_where_a_request_would_find_it() {
    let world = World::default();
    assert!(world.builder().build().unwrap().wait_for_room(Duration::ZERO));
    let cache = world.cache(1);
    assert!(cache.wait_for_room(Duration::ZERO));
    world.fill(&cache, [1]);
    assert!(cache.wait_for_room(Duration::ZERO));
    // Asking evicts nothing.
    assert_eq!((cache.len(), world.released()), (1, vec![]));
    world.set_busy(1, true);
    assert!(!cache.wait_for_room(Duration::ZERO));
    world.set_busy(1, false);
    let pin = cache.get(&1).unwrap();
    assert!(!cache.wait_for_room(Duration::from_millis(5)));
    drop(pin);
    assert!(cache.wait_for_room(Duration::ZERO));
}

#[test]
fn room_waits_end_with_an_unpin_a_failed_build_and_a_release() {
    let world = World::default();
    let cache = world.cache(1);
    let wait = || {
        let cache = cache.clone();
        thread::spawn(move || cache.wait_for_room(Duration::MAX))
    };
    let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
    let waiter = wait();
    drop(pin);
    assert!(waiter.join().unwrap());
    let gate = Gate::default();
    let build = {
        let (cache, gate) = (cache.clone(), gate.clone());
        thread::spawn(move || {
            cache
                .get_or_build(&2, || {
                    gate.pass();
                    Err(failure("no"))
                })
                .map(drop)
        })
    };
    gate.await_arrivals(1);
    assert!(!cache.wait_for_room(Duration::from_millis(1)));
    let waiter = wait();
    gate.open();
    assert!(waiter.join().unwrap());
    assert!(build.join().unwrap().is_err());
    let pin = cache.get_or_build(&3, || world.build(3)).unwrap();
    let drain = cache.clear();
    let waiter = wait();
    drop(pin);
    assert!(waiter.join().unwrap());
    assert_eq!(drain.released(), 1);
}

#[test]
fn room_waits_see_by_themselves_that_a_value_has_become_idle() {
    let world = World::default();
    let cache = world.cache(1);
    world.fill(&cache, [1]);
    world.set_busy(1, true);
    let waiter = {
        let cache = cache.clone();
        thread::spawn(move || cache.wait_for_room(Duration::MAX))
    };
    while world.take_asked().is_empty() {
        thread::yield_now();
    }
    world.set_busy(1, false);
    assert!(waiter.join().unwrap());
}

#[test]
fn room_waits_ask_again_at_growing_distances() {
    let world = World::default();
    let cache = world.cache(2);
    world.fill(&cache, [1, 2]);
    world.set_busy(1, true);
    world.set_busy(2, true);
    world.take_asked();
    // Several at once, who must not keep one another awake.
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let cache = cache.clone();
            thread::spawn(move || cache.wait_for_room(Duration::from_millis(300)))
        })
        .collect();
    assert!(waiters.into_iter().all(|waiter| !waiter.join().unwrap()));
    let asked = world.take_asked().len();
    assert!(asked < 300, "two values were asked about {asked} times by three in 0.3 s");
}

#[test]
fn a_poke_has_waiters_ask_at_once() {
    let world = World::default();
    let cache = world.cache(1);
    world.fill(&cache, [1]);
    world.set_busy(1, true);
    let waiter = {
        let cache = cache.clone();
        thread::spawn(move || cache.wait_for_room(Duration::MAX))
    };
    // However long the distances have grown, every poke is an answer soon.
    for _ in 0..200 {
        world.take_asked();
        cache.poke();
        while world.take_asked().is_empty() {
            thread::yield_now();
        }
    }
    world.set_busy(1, false);
    cache.poke();
    assert!(waiter.join().unwrap());
}
