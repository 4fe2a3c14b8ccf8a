//! Builds against each other, and against what dooms them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};
use std::time::Duration;

use grainstore::{Error, Ownership};

use crate::world::{Grain, Grains, World, check, device, explore, look};

#[test]
fn two_builds_of_one_key() {
    explore("two threads ask for one key", 6, || {
        let world = World::default();
        let cache = world.cache(1);
        let other = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || world.ask(&cache, 1).map(|pin| look(&pin, 1))
        });
        world.step();
        let pin = world.ask(&cache, 1).unwrap();
        other.join().unwrap().unwrap();
        assert_eq!(cache.statistics().built, 1);
        drop(pin);
        world.end(cache);
    });
}

#[test]
fn a_failing_build_and_those_who_wait_for_it() {
    explore("a build that fails, and a waiter", None, || {
        let world = World::default();
        let cache = world.cache(1);
        let other = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || world.ask(&cache, 1)
        });
        world.step();
        let failure = cache.get_or_build(&1, || Err(std::io::Error::other("on purpose")));
        check(&failure, 1);
        match other.join().unwrap() {
            Ok(pin) => look(&pin, 1),
            Err(error) => assert!(error.downcast_ref::<std::io::Error>().is_some(), "{error}"),
        }
        // Its place is back, and the key is asked for afresh.
        drop(failure);
        world.ask(&cache, 2).unwrap();
        world.end(cache);
    });
}

#[test]
fn a_place_taken_and_given_back() {
    explore("two keys and one place", 6, || {
        let world = World::default();
        let cache = world.cache(1);
        let other = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 1))
        });
        world.step();
        let answer = world.ask(&cache, 2);
        other.join().unwrap();
        drop(answer);
        world.ask(&cache, 3).unwrap();
        world.end(cache);
    });
}

#[test]
fn two_misses_and_one_victim() {
    explore("two misses that want the same victim's place", 4, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let other = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 2))
        });
        world.step();
        drop(world.ask(&cache, 3));
        other.join().unwrap();
        world.ask(&cache, 4).unwrap();
        world.end(cache);
    });
}

/// `idle` is asked by one, and the other waits for the answer.
#[test]
fn two_misses_and_one_question() {
    explore("two misses, and one of them asks", 3, || {
        let world = World::default();
        let cache = world.asking(1).build().unwrap();
        drop(world.ask(&cache, 1));
        let other = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 2))
        });
        world.step();
        drop(world.ask(&cache, 3));
        other.join().unwrap();
        world.ask(&cache, 4).unwrap();
        world.end(cache);
    });
}

/// Whoever only looks for room holds a value for a moment; who needs its place waits for that.
#[test]
fn a_miss_against_a_look_for_room() {
    explore("a miss against a look for room", None, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let other = world.spawn({
            let cache = cache.clone();
            move || cache.wait_for_room(Duration::ZERO)
        });
        world.step();
        world.ask(&cache, 2).unwrap();
        other.join().unwrap();
        world.end(cache);
    });
}

/// What it holds it asks about, and `idle` asks for the very key that the miss is for.
#[test]
fn a_miss_against_an_idle_that_asks_for_its_key() {
    explore("a miss against an idle that asks for its key", 4, || {
        let world = World::default();
        let asked: Arc<OnceLock<Grains>> = Arc::default();
        let idle = (world.clone(), asked.clone());
        let cache = world
            .builder(1)
            .idle(move |grain: &Grain| {
                let (world, cache) = &idle;
                if grain.key == 1 {
                    drop(world.ask(cache.get().unwrap(), 2));
                }
                true
            })
            .build()
            .unwrap();
        assert!(asked.set(cache.clone()).is_ok());
        drop(world.ask(&cache, 1));
        let other = world.spawn({
            let cache = cache.clone();
            move || cache.wait_for_room(Duration::ZERO)
        });
        world.step();
        drop(world.ask(&cache, 2));
        other.join().unwrap();
        // The cache and its idle keep each other.
        cache.clear().wait().unwrap();
        assert_eq!(world.alive(), 0);
    });
}

/// The same of who makes room for a weight.
#[test]
fn a_miss_against_a_fit() {
    explore("a miss against a value that makes room for its weight", 4, || {
        let world = World::default();
        let cache = world.builder(2).weigher(|_, _| 1).max_weight(1).build().unwrap();
        drop(world.ask(&cache, 1));
        let other = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 2))
        });
        world.step();
        drop(world.ask(&cache, 3));
        other.join().unwrap();
        world.end(cache);
    });
}

#[test]
fn a_build_against_its_devices_eviction() {
    explore("a build's end against its device's eviction", 6, || {
        let world = World::default();
        let cache = world.cache(2);
        let builder = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || {
                let answer = cache.on(&device()).get_or_build(&1, || world.build(1));
                check(&answer, 1);
                if let Err(error) = answer {
                    assert!(matches!(error, Error::DeviceDestroyed { .. }), "{error}");
                }
            }
        });
        world.step();
        cache.evict_device(&device()).wait().unwrap();
        builder.join().unwrap();
        world.end(cache);
    });
}

#[test]
fn a_build_against_a_clear_that_dooms() {
    explore("a build's end against the clear of a borrowing cache", 6, || {
        let world = World::default();
        let cache = world.builder(1).ownership(Ownership::Borrows).build().unwrap();
        let builder = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || {
                if let Err(error) = world.ask(&cache, 1) {
                    assert!(matches!(error, Error::Cleared), "{error}");
                }
            }
        });
        world.step();
        cache.clear().wait().unwrap();
        builder.join().unwrap();
        world.end(cache);
    });
}

#[test]
fn a_build_against_a_clear_that_does_not() {
    explore("a build's end against the clear of an owning cache", 6, || {
        let world = World::default();
        let cache = world.cache(1);
        let builder = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 1).unwrap())
        });
        world.step();
        cache.clear().wait().unwrap();
        builder.join().unwrap();
        world.end(cache);
    });
}

/// Whoever asks after the removal gets a value whose build began after it.
#[test]
fn two_builds_of_one_key_around_a_removal() {
    explore("two builds of one key around a removal", 5, || {
        let world = World::default();
        let cache = world.cache(2);
        let removed = Arc::new(AtomicBool::new(false));
        let late = Arc::new(AtomicBool::new(false));
        let builder = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            let (removed, late) = (removed.clone(), late.clone());
            move || {
                let answer = cache.get_or_build(&1, || {
                    late.store(removed.load(Ordering::Relaxed), Ordering::Relaxed);
                    world.build(1)
                });
                check(&answer, 1);
                if let Err(error) = answer {
                    assert!(matches!(error, Error::Removed), "{error}");
                }
            }
        });
        world.step();
        drop(cache.remove(&1));
        removed.store(true, Ordering::Relaxed);
        let mine = Arc::new(AtomicBool::new(false));
        let pin = cache.get_or_build(&1, || {
            mine.store(true, Ordering::Relaxed);
            world.build(1)
        });
        let fresh = mine.load(Ordering::Relaxed) || late.load(Ordering::Relaxed);
        assert!(fresh, "a value from before the removal");
        look(pin.as_ref().unwrap(), 1);
        builder.join().unwrap();
        drop(pin);
        world.end(cache);
    });
}

#[test]
fn a_leader_that_is_dropped_against_a_waiter() {
    explore("a leader dropped while a waiter arrives", 6, || {
        let world = World::default();
        let cache = world.cache(1);
        let waiter = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || look(&world.ask(&cache, 1).unwrap(), 1)
        });
        world.step();
        let never = std::future::pending::<Result<_, std::io::Error>>();
        let mut leading = Box::pin(cache.get_or_build_async(&1, never));
        let poll = leading.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop((poll, leading));
        waiter.join().unwrap();
        world.end(cache);
    });
}

#[test]
fn a_leader_that_is_dropped_against_a_removal() {
    explore("a leader dropped while its build is removed", None, || {
        let world = World::default();
        let cache = world.cache(1);
        let never = std::future::pending::<Result<_, std::io::Error>>();
        let mut leading = Box::pin(cache.get_or_build_async(&1, never));
        assert!(leading.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let remover = world.spawn({
            let cache = cache.clone();
            move || cache.remove(&1).wait().unwrap()
        });
        world.step();
        drop(leading);
        remover.join().unwrap();
        world.ask(&cache, 2).unwrap();
        world.end(cache);
    });
}

/// A waiter that goes away gives back the pin that the outcome owes it.
#[test]
fn a_waiter_that_is_dropped_against_the_end_of_the_build() {
    explore("a waiter dropped while the build ends", 5, || {
        let world = World::default();
        let cache = world.cache(1);
        let builder = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 1).unwrap())
        });
        world.step();
        let waiter_world = world.clone();
        let mine = async move { waiter_world.build(1) };
        let mut waiting = Box::pin(cache.get_or_build_async(&1, mine));
        let poll = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop((poll, waiting));
        builder.join().unwrap();
        cache.remove(&1).wait().unwrap();
        assert_eq!(world.alive(), 0);
        world.end(cache);
    });
}
