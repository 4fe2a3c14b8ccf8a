//! Slots: a caller's own handle of one key.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Barrier};
use std::thread;

use grainstore::{Cache, DeviceId, Family, Pinned};

use crate::common::{Failure, World, block_on, check, failure};

#[test]
fn slots_serve_what_is_there_and_nothing_else() {
    let world = World::default();
    let cache = world.cache(2);
    let mut slot = cache.slot(1);
    assert!(slot.get().is_none());
    let first = slot.get_or_build(|| world.build(1)).unwrap();
    assert!(Pinned::ptr_eq(&first, &slot.get_or_build(|| Err(failure("hit"))).unwrap()));
    drop(first);
    assert_eq!(cache.remove(&1).released(), 1);
    assert!(slot.get().is_none());
    // The same place now holds another key's value.
    cache.get_or_build(&2, || world.build(2)).unwrap();
    assert!(slot.get().is_none());
    let again = block_on(slot.get_or_build_async(async { world.build(1) })).unwrap();
    assert_eq!((again.key, world.made()), (1, 3));
    // A hit by a slot is a use like any other.
    drop((again, cache.get(&2), slot.get()));
    cache.get_or_build(&3, || world.build(3)).unwrap();
    assert_eq!(world.released(), [1, 2]);
    assert_eq!(slot.key(), &1);
    check(&cache);
}

/// A slot that knows where its value is asks nothing of the key, on a device or on none.
#[test]
fn a_slots_hit_hashes_no_key_and_compares_none() {
    thread_local! {
        static ASKED: Cell<usize> = const { Cell::new(0) };
    }
    #[derive(Clone, Eq)]
    struct Key;
    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            ASKED.set(ASKED.get() + 1);
            state.write_u8(0);
        }
    }
    impl PartialEq for Key {
        fn eq(&self, _: &Self) -> bool {
            ASKED.set(ASKED.get() + 1);
            true
        }
    }
    let cache = Cache::<Key, u64>::builder().capacity(2).build().unwrap();
    let device = DeviceId::new(Family::CUDA, 0);
    for mut slot in [cache.slot(Key), cache.on(&device).slot(Key)] {
        drop(slot.get_or_build(|| Ok::<_, Failure>(1)).unwrap());
        drop(slot.get());
        ASKED.set(0);
        for _ in 0..3 {
            assert_eq!(*slot.get().unwrap(), 1);
            assert_eq!(*slot.get_or_build(|| Err(failure("hit"))).unwrap(), 1);
            assert_eq!(
                *block_on(slot.get_or_build_async(async { Err(failure("hit")) })).unwrap(),
                1
            );
        }
        assert_eq!(ASKED.get(), 0);
    }
}

#[test]
fn a_slot_keeps_its_cache_open() {
    let world = World::default();
    let cache = world.cache(1);
    let mut slot = cache.slot(1);
    drop(slot.get_or_build(|| world.build(1)).unwrap());
    drop(cache);
    assert_eq!(slot.get().unwrap().key, 1);
    drop(slot);
    assert_eq!(world.alive(), 0);
}

#[test]
fn slots_on_many_threads_meet_evictions_and_never_a_wrong_value() {
    let world = World::default();
    let cache = world.cache(3);
    let start = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            let (cache, world, start) = (cache.clone(), world.clone(), start.clone());
            thread::spawn(move || {
                let mut slots: Vec<_> = (0..4).map(|key| cache.slot(key)).collect();
                start.wait();
                for round in 0..2_000 {
                    let key = (thread + round) % 4;
                    match slots[key as usize].get_or_build(|| world.build(key)) {
                        Ok(module) => assert_eq!(module.key, key),
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
    assert!(world.most_alive() <= 3);
    cache.clear().wait().unwrap();
    assert_eq!(world.alive(), 0);
    check(&cache);
}
