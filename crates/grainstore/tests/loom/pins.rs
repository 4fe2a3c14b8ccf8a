//! Pins against everything that would end a value: claims, questions, scans, removals.

use std::sync::Arc;

use loom::thread;

use grainstore::{Bookmark, Error};

use crate::world::{World, explore, look};

#[test]
fn a_pin_against_a_claim() {
    explore("a pin against a victim's claim", 5, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let reader = world.spawn({
            let cache = cache.clone();
            move || {
                if let Some(pin) = cache.get(&1) {
                    look(&pin, 1);
                    thread::yield_now();
                    look(&pin, 1);
                }
            }
        });
        world.step();
        match world.ask(&cache, 2) {
            Ok(pin) => look(&pin, 2),
            Err(error) => assert!(matches!(error, Error::Busy { pinned: 1, .. }), "{error}"),
        }
        reader.join().unwrap();
        // Whoever was pinned has been put back into the order of use.
        world.ask(&cache, 3).unwrap();
        world.end(cache);
    });
}

/// The second hit of a thread goes the shortest way, without a lock.
#[test]
fn a_second_hit_against_a_claim() {
    explore("a hit without a lock against a victim's claim", 4, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let evictor = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 2))
        });
        world.step();
        if let Some(pin) = cache.get(&1) {
            look(&pin, 1);
            thread::yield_now();
            look(&pin, 1);
        }
        evictor.join().unwrap();
        world.ask(&cache, 3).unwrap();
        world.end(cache);
    });
}

/// What a hit finds without a lock has been published by its builder's last step.
#[test]
fn a_hit_against_the_end_of_a_build() {
    explore("a hit without a lock against the end of a build", 5, || {
        let world = World::default();
        let cache = world.cache(2);
        drop(world.ask(&cache, 1));
        drop(cache.get(&1));
        let builder = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 2).unwrap())
        });
        world.step();
        if let Some(pin) = cache.get(&2) {
            look(&pin, 2);
        }
        builder.join().unwrap();
        world.end(cache);
    });
}

#[test]
fn a_slot_against_a_claim_and_a_build_in_its_place() {
    explore("a slot's hit against an eviction and a new value in the place", 4, || {
        let world = World::default();
        let cache = world.cache(1);
        let mut slot = cache.slot(1);
        drop(slot.get_or_build(|| world.build(1)));
        let evictor = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 2))
        });
        world.step();
        if let Some(pin) = slot.get() {
            look(&pin, 1);
            thread::yield_now();
            look(&pin, 1);
        }
        evictor.join().unwrap();
        drop(slot);
        world.end(cache);
    });
}

#[test]
fn a_bookmark_against_a_claim_and_a_build_in_its_place() {
    explore("a bookmark's hit against an eviction and a new value in the place", 4, || {
        let world = World::default();
        let cache = world.cache(1);
        let bookmark = Bookmark::new();
        bookmark.set(&world.ask(&cache, 1).unwrap());
        let evictor = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || drop(world.ask(&cache, 2))
        });
        world.step();
        if let Some(pin) = cache.try_get_at(&bookmark, |_| true) {
            look(&pin, 1);
            // Beside the first pin, so in another slot.
            if let Some(beside) = cache.try_get(&1) {
                drop(pin);
                look(&beside, 1);
            }
        }
        evictor.join().unwrap();
        world.end(cache);
    });
}

/// Two caches whose values lie at the same place, and a bookmark that goes from one to the other.
#[test]
fn a_bookmark_against_its_setting_to_another_cache() {
    explore("a look by a bookmark against its setting to another cache's value", 4, || {
        let world = World::default();
        let (cache, other) = (world.cache(2), world.cache(2));
        let bookmark = Arc::new(Bookmark::new());
        bookmark.set(&world.ask(&cache, 1).unwrap());
        let theirs = world.ask(&other, 2).unwrap();
        drop(cache.get(&1));
        let setter = world.spawn({
            let bookmark = bookmark.clone();
            move || {
                bookmark.set(&theirs);
                theirs
            }
        });
        world.step();
        if let Some(pin) = cache.try_get_at(&bookmark, |_| true) {
            look(&pin, 1);
        }
        if let Some(pin) = other.try_get_at(&bookmark, |_| true) {
            look(&pin, 2);
        }
        drop(setter.join().unwrap());
        drop(other);
        world.end(cache);
    });
}

/// A bookmark that nobody has set yet, and two who do at once.
#[test]
fn two_settings_of_a_bookmark_and_a_look() {
    explore("two settings of a bookmark to values of two caches, and a look", 3, || {
        let world = World::default();
        let (cache, other) = (world.cache(2), world.cache(2));
        let bookmark = Arc::new(Bookmark::new());
        let (ours, theirs) = (world.ask(&cache, 1).unwrap(), world.ask(&other, 2).unwrap());
        drop((cache.get(&1), other.get(&2)));
        let setter = world.spawn({
            let bookmark = bookmark.clone();
            move || {
                bookmark.set(&theirs);
                theirs
            }
        });
        world.step();
        if let Some(pin) = other.try_get_at(&bookmark, |_| true) {
            look(&pin, 2);
        }
        bookmark.set(&ours);
        let theirs = setter.join().unwrap();
        let found = (
            cache.try_get_at(&bookmark, |_| true).map(|pin| look(&pin, 1)),
            other.try_get_at(&bookmark, |_| true).map(|pin| look(&pin, 2)),
        );
        assert!(found.0.is_some() != found.1.is_some(), "it leads to the one or to the other");
        drop((ours, theirs, other));
        world.end(cache);
    });
}

#[test]
fn a_claim_against_an_idle_that_flips() {
    explore("a claim, its question, and a value that becomes busy", 4, || {
        let world = World::default();
        let cache = world.asking(1).build().unwrap();
        drop(world.ask(&cache, 1));
        let user = world.spawn({
            let (world, cache) = (world.clone(), cache.clone());
            move || {
                if let Some(pin) = cache.get(&1) {
                    // A launch: from here on the value is busy, also when the pin is gone.
                    world.set_busy(true);
                    look(&pin, 1);
                    drop(pin);
                    // No answer from before the pin may end it now.
                    let pin = cache.get(&1).unwrap();
                    look(&pin, 1);
                }
            }
        });
        world.step();
        drop(world.ask(&cache, 2));
        user.join().unwrap();
        world.set_busy(false);
        world.ask(&cache, 3).unwrap();
        world.end(cache);
    });
}

#[test]
fn the_last_unpin_against_an_eviction() {
    explore("the last unpin against a search for a victim", None, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let pin = cache.get(&1).unwrap();
        let holder = world.spawn(move || {
            look(&pin, 1);
            drop(pin);
        });
        world.step();
        drop(world.ask(&cache, 2));
        holder.join().unwrap();
        world.ask(&cache, 3).unwrap();
        world.end(cache);
    });
}

#[test]
fn the_last_counted_unpin_against_an_eviction() {
    explore("the last unpin of two counted ones against a search", None, || {
        let world = World::default();
        let cache = world.cache(1);
        let pin = world.ask(&cache, 1).unwrap();
        let clone = pin.clone();
        let holder = world.spawn(move || {
            look(&pin, 1);
            drop(pin);
        });
        world.step();
        drop(clone);
        drop(world.ask(&cache, 2));
        holder.join().unwrap();
        world.ask(&cache, 3).unwrap();
        world.end(cache);
    });
}

#[test]
fn the_last_unpin_against_a_removal() {
    explore("the last unpin against a removal that waits", 5, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let pin = cache.get(&1).unwrap();
        let holder = world.spawn(move || {
            look(&pin, 1);
            drop(pin);
        });
        world.step();
        cache.remove(&1).wait().unwrap();
        assert_eq!(world.alive(), 0);
        holder.join().unwrap();
        world.end(cache);
    });
}

/// The look for pins sees slots first and the count second; the pin goes the same way.
#[test]
fn a_clone_against_a_removal() {
    explore("a pin that moves from a slot to the count, against a removal", 4, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let pin = cache.get(&1).unwrap();
        let holder = world.spawn(move || {
            let clone = pin.clone();
            drop(pin);
            look(&clone, 1);
            drop(clone);
        });
        world.step();
        cache.remove(&1).wait().unwrap();
        assert_eq!(world.alive(), 0);
        holder.join().unwrap();
        world.end(cache);
    });
}

#[test]
fn a_clone_against_a_claim() {
    explore("a pin that moves from a slot to the count, against a claim", 5, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let pin = cache.get(&1).unwrap();
        let holder = world.spawn(move || {
            let clone = pin.clone();
            drop(pin);
            look(&clone, 1);
            drop(clone);
        });
        world.step();
        drop(world.ask(&cache, 2));
        holder.join().unwrap();
        world.ask(&cache, 3).unwrap();
        world.end(cache);
    });
}

/// The slot of a pin that somebody waits for is set free, and taken by its owner for another value.
#[test]
fn a_watched_slot_taken_again() {
    explore("a watched slot that its owner takes again", 6, || {
        let world = World::default();
        let cache = world.cache(2);
        drop((world.ask(&cache, 1), world.ask(&cache, 2)));
        let pin = cache.get(&1).unwrap();
        let remover = world.spawn({
            let cache = cache.clone();
            move || cache.remove(&1).wait().unwrap()
        });
        world.step();
        drop(pin);
        let other = cache.get(&2).unwrap();
        look(&other, 2);
        drop(other);
        remover.join().unwrap();
        assert_eq!(world.alive(), 1);
        world.end(cache);
    });
}

/// The thread whose slots pin it ends while the pin lives on elsewhere.
#[test]
fn a_pin_that_outlives_its_thread() {
    explore("a pin of a thread that ends, against a removal", None, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let giver = world.spawn({
            let cache = cache.clone();
            move || cache.get(&1).unwrap()
        });
        world.step();
        let pin = giver.join().unwrap();
        let drain = cache.remove(&1);
        look(&pin, 1);
        drop(pin);
        drain.wait().unwrap();
        assert_eq!(world.alive(), 0);
        world.end(cache);
    });
}
