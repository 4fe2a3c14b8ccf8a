//! Bookmarks: where a value was, kept by whoever asks for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;

use grainstore::{Bookmark, Cache, Pinned};

use crate::common::{Failure, Module, World, check};

/// The value of a bookmark, whatever it is.
fn go(cache: &Cache<u64, Module>, bookmark: &Bookmark) -> Option<Pinned<Module>> {
    cache.try_get_at(bookmark, |_| true)
}

/// A cache with the values of these keys, at hand for this thread, and a bookmark of the first.
fn marked(world: &World, capacity: usize, keys: &[u64]) -> (Cache<u64, Module>, Bookmark) {
    let cache = world.cache(capacity);
    world.fill(&cache, keys.iter().copied());
    let bookmark = Bookmark::new();
    bookmark.set(&cache.get(&keys[0]).unwrap());
    (cache, bookmark)
}

#[test]
fn a_bookmark_leads_to_what_it_was_set_to_and_to_nothing_else() {
    let world = World::default();
    let (cache, bookmark) = marked(&world, 2, &[1]);
    assert!(go(&cache, &Bookmark::new()).is_none());
    let found = go(&cache, &bookmark).unwrap();
    assert!(Pinned::ptr_eq(&found, &cache.get(&1).unwrap()));
    // It is found there as long as it is there, but no longer than it is resident.
    drop(cache.remove(&1));
    assert_eq!(found.key, 1);
    assert!(go(&cache, &bookmark).is_none());
    drop(found);
    // The same place holds another key's value, and then the same key's next one.
    for key in [2, 1] {
        let value = cache.get_or_build(&key, || world.build(key)).unwrap();
        assert!(go(&cache, &bookmark).is_none());
        drop(value);
        drop(cache.remove(&key));
    }
    check(&cache);
}

#[test]
fn a_bookmark_is_of_one_cache_until_it_is_set_to_a_value_of_another() {
    let world = World::default();
    let (cache, bookmark) = marked(&world, 2, &[1]);
    let (other, others) = marked(&world, 2, &[1]);
    assert!(go(&other, &bookmark).is_none() && go(&cache, &others).is_none());
    bookmark.set(&other.get(&1).unwrap());
    assert!(go(&cache, &bookmark).is_none());
    assert!(go(&other, &bookmark).is_some_and(|value| value.key == 1));
    // A cache that is gone leaves nothing behind that another could stumble over.
    drop(other);
    assert!(go(&cache, &bookmark).is_none() && go(&cache, &others).is_none());
    bookmark.set(&cache.get(&1).unwrap());
    assert!(go(&cache, &bookmark).is_some());
    drop(cache);
    assert_eq!(world.alive(), 0);
}

#[test]
fn a_look_by_bookmark_is_a_use_if_the_value_is_wanted() {
    let world = World::default();
    let (cache, bookmark) = marked(&world, 2, &[1, 2]);
    let hits = cache.statistics().hits;
    assert!(cache.try_get_at(&bookmark, |module| module.key == 2).is_none());
    assert_eq!(cache.statistics().hits, hits, "what is not wanted is no use");
    drop(cache.get(&2));
    assert!(cache.try_get_at(&bookmark, |module| module.key == 1).is_some());
    assert_eq!(cache.statistics().hits, hits + 2);
    // The value that was used less recently goes.
    cache.get_or_build(&3, || world.build(3)).unwrap();
    assert_eq!(world.released(), [2]);
    check(&cache);
}

/// What is looked at and not wanted is let go at once.
#[test]
fn a_look_that_finds_nothing_leaves_no_pin() {
    let world = World::default();
    let (cache, bookmark) = marked(&world, 1, &[1]);
    assert!(cache.try_get_at(&bookmark, |_| false).is_none());
    cache.get_or_build(&2, || world.build(2)).unwrap();
    assert!(go(&cache, &bookmark).is_none());
    cache.get_or_build(&3, || world.build(3)).unwrap();
    assert_eq!(world.released(), [1, 2]);
    check(&cache);
}

/// A thread that holds other pins, or looks for the first time since an install, is served by its key
/// without a lock.
#[test]
fn what_a_bookmark_misses_is_at_hand_by_its_key() {
    let world = World::default();
    let (cache, bookmark) = marked(&world, 3, &[1, 2]);
    let (first, second) = (go(&cache, &bookmark).unwrap(), cache.try_get(&2).unwrap());
    assert!(go(&cache, &bookmark).is_none());
    let again = cache.try_get(&1).unwrap();
    assert!(Pinned::ptr_eq(&first, &again) && second.key == 2);
    drop((first, second, again));
    cache.get_or_build(&3, || world.build(3)).unwrap();
    assert!(cache.try_get(&1).is_some_and(|value| value.key == 1));
    assert!(thread::scope(|scope| scope.spawn(|| cache.try_get(&1).is_none()).join().unwrap()));
    check(&cache);
}

/// The one who looks may use the cache meanwhile, and change it.
#[test]
fn whoever_looks_may_call_the_cache() {
    let world = World::default();
    let (cache, bookmark) = marked(&world, 3, &[1, 2]);
    let found = cache.try_get_at(&bookmark, |value| {
        assert_eq!((value.key, cache.get(&1).unwrap().key, cache.get(&2).unwrap().key), (1, 1, 2));
        drop(cache.clear());
        cache.get_or_build(&3, || world.build(3)).unwrap();
        bookmark.set(&cache.get(&3).unwrap());
        true
    });
    assert_eq!(found.as_deref().map(|value| value.key), Some(1));
    drop(found);
    assert_eq!(go(&cache, &bookmark).unwrap().key, 3);
    check(&cache);
    drop(cache);
    assert_eq!(world.alive(), 0);
}

#[test]
fn a_panic_of_whoever_looks_leaves_no_pin() {
    let world = World::default();
    let (cache, bookmark) = marked(&world, 1, &[1]);
    let look = || cache.try_get_at(&bookmark, |_| panic!("on purpose")).is_some();
    assert!(catch_unwind(AssertUnwindSafe(look)).is_err());
    cache.get_or_build(&2, || world.build(2)).unwrap();
    assert_eq!(world.released(), [1]);
    check(&cache);
}

/// Bookmarks are shared: by threads, and here by two caches that overwrite each other's.
#[test]
fn bookmarks_on_many_threads_meet_evictions_and_never_lead_to_a_wrong_value() {
    let world = World::default();
    let caches = [0, 1].map(|_| world.cache(3));
    let bookmarks: Arc<[Bookmark; 4]> = Arc::default();
    let start = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            let (world, start) = (world.clone(), start.clone());
            let (caches, bookmarks) = (caches.clone(), bookmarks.clone());
            thread::spawn(move || {
                start.wait();
                for round in 0..2_000 {
                    let (key, cache) = ((thread + round) % 4, &caches[(round / 4 % 2) as usize]);
                    let bookmark = &bookmarks[key as usize];
                    if let Some(module) = go(cache, bookmark) {
                        assert_eq!(module.key, key);
                        continue;
                    }
                    match cache.get_or_build(&key, || world.build(key)) {
                        Ok(module) => bookmark.set(&module),
                        Err(error) => assert!(error.is_busy(), "{error}"),
                    }
                    if round % 64 == 0 {
                        drop(cache.clear());
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for cache in caches {
        cache.clear().wait().unwrap();
        check(&cache);
    }
    assert_eq!(world.alive(), 0);
}

/// An index of a cache that is larger leads to nothing in a smaller one.
#[test]
fn a_bookmark_of_a_large_cache_is_nothing_to_a_small_one() {
    let large = Cache::<u64, u64>::builder().build().unwrap();
    let small = Cache::<u64, u64>::builder().capacity(1).build().unwrap();
    let bookmarks: Vec<_> = (0..5_000)
        .map(|key| {
            let bookmark = Bookmark::new();
            bookmark.set(&large.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap());
            bookmark
        })
        .collect();
    small.get_or_build(&0, || Ok::<_, Failure>(0)).unwrap();
    for (key, bookmark) in (0..).zip(&bookmarks) {
        drop((large.get(&key), small.get(&0)));
        assert!(small.try_get_at(bookmark, |_| true).is_none());
        assert!(large.try_get_at(bookmark, |_| true).is_some_and(|value| *value == key));
    }
}
