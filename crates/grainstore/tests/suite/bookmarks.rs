//! Bookmarks: where a value was, kept by whoever asks for it.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;

use grainstore::{Bookmark, Cache, Pinned};

use crate::common::{Failure, Module, World, check};

/// The value of a bookmark, whatever it is.
fn go(cache: &Cache<u64, Module>, bookmark: &Bookmark) -> Option<Pinned<Module>> {
    cache.try_get_at(bookmark, |_| true).ok()
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
    assert!(cache.try_get_at(&bookmark, |module| module.key == 2).is_err());
    assert_eq!(cache.statistics().hits, hits, "what is not wanted is no use");
    drop(cache.get(&2));
    assert!(cache.try_get_at(&bookmark, |module| module.key == 1).is_ok());
    assert_eq!(cache.statistics().hits, hits + 2);
    // The value that was used less recently goes.
    cache.get_or_build(&3, || world.build(3)).unwrap();
    assert_eq!(world.released(), [2]);
    check(&cache);
}

#[test]
fn what_was_missed_counts_as_pinned_until_it_is_dropped() {
    let world = World::default();
    let (cache, bookmark) = marked(&world, 1, &[1]);
    let missed = cache.try_get_at(&bookmark, |_| false).unwrap_err();
    let error = cache.get_or_build(&2, || world.build(2)).unwrap_err();
    assert!(error.is_busy(), "{error}");
    drop(missed);
    cache.get_or_build(&2, || world.build(2)).unwrap();
    check(&cache);
}

/// A look that was forgotten before it was over leaves nothing in what other caches use.
#[test]
fn a_forgotten_miss_harms_no_other_cache() {
    for _ in 0..3 {
        let world = World::default();
        let (cache, bookmark) = marked(&world, 1, &[1]);
        // The place of the one before it can be given up here as well.
        cache.get_or_build(&2, || world.build(2)).unwrap();
        drop(cache.remove(&2));
        mem::forget(cache.try_get_at(&bookmark, |_| true).unwrap_err());
        drop(cache);
        assert_eq!(world.alive(), 0);
    }
}

#[test]
fn a_panic_of_whoever_looks_leaves_no_pin() {
    let world = World::default();
    let (cache, bookmark) = marked(&world, 1, &[1]);
    let look = || cache.try_get_at(&bookmark, |_| panic!("on purpose")).is_ok();
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
        assert!(small.try_get_at(bookmark, |_| true).is_err());
        assert!(large.try_get_at(bookmark, |_| true).is_ok_and(|value| *value == key));
    }
}
