//! Drains, and the end of a cache.

use grainstore::ReleaseError;

use crate::world::{World, device, explore, look};

#[test]
fn two_drains_over_one_value() {
    explore("two drains over one pinned value", 5, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(cache.on(&device()).get_or_build(&1, || world.build(1)));
        let pin = cache.on(&device()).get(&1).unwrap();
        let first = cache.on(&device()).remove(&1);
        let second = world.spawn({
            let cache = cache.clone();
            move || cache.evict_device(&device()).wait().unwrap()
        });
        world.step();
        look(&pin, 1);
        drop(pin);
        first.wait().unwrap();
        second.join().unwrap();
        assert_eq!(world.alive(), 0);
        world.end(cache);
    });
}

#[test]
fn a_release_error_against_two_drains() {
    explore("an error of a release, and two drains that end", 7, || {
        let world = World::default();
        let release = world.clone();
        let cache = world
            .builder(1)
            .release(move |grain| {
                release.release(&grain);
                Err(std::io::Error::other("on purpose"))
            })
            .build()
            .unwrap();
        let pin = world.ask(&cache, 1).unwrap();
        let first = cache.remove(&1);
        let second = cache.clear();
        assert_eq!((first.pending(), second.pending()), (1, 0));
        let waiter = world.spawn(move || first.wait());
        drop(pin);
        let error = waiter.join().unwrap();
        assert!(matches!(error, Err(ReleaseError::Failed(_))), "{error:?}");
        assert_eq!(cache.statistics().release_failures, 1);
        world.end(cache);
    });
}

#[test]
fn two_clears_at_once() {
    explore("two clears of one idle value", None, || {
        let world = World::default();
        let cache = world.asking(1).build().unwrap();
        drop(world.ask(&cache, 1));
        let other = world.spawn({
            let cache = cache.clone();
            move || drop(cache.clear())
        });
        world.step();
        drop(cache.clear());
        other.join().unwrap();
        assert_eq!(world.alive(), 0);
        world.end(cache);
    });
}

#[test]
fn an_abandoned_value_against_its_last_unpin() {
    explore("an abandoned value against its last unpin", None, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let pin = cache.get(&1).unwrap();
        let holder = world.spawn(move || {
            look(&pin, 1);
            drop(pin);
        });
        world.step();
        let abandoned = cache.remove(&1).abandon();
        holder.join().unwrap();
        let figures = cache.statistics();
        assert_eq!(figures.abandoned, abandoned as u64);
        assert_eq!(figures.built, figures.released + figures.abandoned);
        assert_eq!((figures.entries, figures.retired), (0, 0));
        assert_eq!(world.alive(), abandoned);
        drop(cache);
    });
}

#[test]
fn the_last_pin_against_the_last_handle() {
    explore("the last pin against the last handle", None, || {
        let world = World::default();
        let cache = world.cache(1);
        drop(world.ask(&cache, 1));
        let pin = cache.get(&1).unwrap();
        let holder = world.spawn(move || {
            look(&pin, 1);
            drop(pin);
        });
        world.step();
        drop(cache);
        holder.join().unwrap();
        assert_eq!(world.alive(), 0);
    });
}

#[test]
fn the_last_counted_pin_against_the_last_handle() {
    explore("the last counted pin against the last handle", None, || {
        let world = World::default();
        let cache = world.cache(1);
        let pin = world.ask(&cache, 1).unwrap();
        let holder = world.spawn(move || {
            look(&pin, 1);
            drop(pin);
        });
        world.step();
        drop(cache);
        holder.join().unwrap();
        assert_eq!(world.alive(), 0);
    });
}
