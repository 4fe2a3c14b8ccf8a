//! What model checkers and reviews found, each as a plain test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Family};

use crate::common::{Module, World};

/// A look for room holds a value for a moment. A miss that met the hold slept until somebody told
/// of its end, which nobody did where there is no `idle`.
#[test]
fn e4_a_miss_that_meets_a_look_for_room_goes_on() {
    let world = World::default();
    let release = world.clone();
    let cache = Cache::<u64, Module>::builder()
        .capacity(1)
        .release(move |module| release.release(module))
        .build()
        .unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let looking = thread::spawn({
        let (cache, over) = (cache.clone(), over.clone());
        move || {
            while !over.load(Ordering::Relaxed) {
                let _ = cache.wait_for_room(Duration::ZERO);
            }
        }
    });
    let (tell, told) = mpsc::channel();
    let missing = thread::spawn(move || {
        for key in 0..30_000 {
            drop(cache.get_or_build(&(key % 2), || world.build(key % 2)));
        }
        tell.send(()).unwrap();
    });
    let came = told.recv_timeout(Duration::from_secs(60));
    over.store(true, Ordering::Relaxed);
    assert!(came.is_ok(), "the misses hang");
    missing.join().unwrap();
    looking.join().unwrap();
}

/// The same look asks about what it holds. A miss met the hold before the question was known, and so
/// was not known to wait for it; then `idle` asked for that miss's own key, and both waited for ever.
#[test]
fn b5_an_idle_that_asks_for_the_key_of_a_miss_that_waits_for_it_is_told() {
    let world = World::default();
    let cell: Arc<OnceLock<Cache<u64, Module>>> = Arc::default();
    let (asked, builds) = (Arc::downgrade(&cell), world.clone());
    let idle = move |module: &Module| {
        let cell = asked.upgrade().unwrap();
        let other = 1 - module.key;
        drop(cell.get().unwrap().get_or_build(&other, || builds.build(other)));
        true
    };
    let release = world.clone();
    let cache = Cache::<u64, Module>::builder()
        .capacity(1)
        .idle(idle)
        .release(move |module| release.release(module))
        .build()
        .unwrap();
    assert!(cell.set(cache).is_ok());
    let over = Arc::new(AtomicBool::new(false));
    let looking = thread::spawn({
        let (cell, over) = (cell.clone(), over.clone());
        move || {
            while !over.load(Ordering::Relaxed) {
                let _ = cell.get().unwrap().wait_for_room(Duration::ZERO);
            }
        }
    });
    let (tell, told) = mpsc::channel();
    let missing = thread::spawn(move || {
        for key in 0..30_000 {
            drop(cell.get().unwrap().get_or_build(&(key % 2), || world.build(key % 2)));
        }
        tell.send(()).unwrap();
    });
    let came = told.recv_timeout(Duration::from_secs(60));
    over.store(true, Ordering::Relaxed);
    assert!(came.is_ok(), "the misses hang");
    missing.join().unwrap();
    looking.join().unwrap();
}

/// A busy value at the cold end, and all others used since their install: the search for a victim
/// walked over what it had put behind once more for each that it put behind. That took minutes here.
#[test]
fn e2_a_busy_value_at_the_cold_end_does_not_make_a_search_long() {
    const ENTRIES: u32 = 300_000;
    let cache = Cache::<u32, u32>::builder()
        .capacity(ENTRIES as usize)
        .idle(|value| *value != 0)
        .build()
        .unwrap();
    let build = |key| move || Ok::<_, std::io::Error>(key);
    (0..ENTRIES).for_each(|key| drop(cache.get_or_build(&key, build(key)).unwrap()));
    (1..ENTRIES).for_each(|key| drop(cache.get(&key).unwrap()));
    drop(cache.get_or_build(&ENTRIES, build(ENTRIES)).unwrap());
    assert!(cache.get(&0).is_some(), "it was busy");
    assert!(cache.get(&1).is_none(), "it was the next");
    assert_eq!(cache.statistics().evictions, 1);
}

/// With an observer a key is cloned as its value leaves. A clone that panicked left the entry half way
/// out: resident, and found by nobody.
#[test]
fn p3_a_key_whose_clone_panics_leaves_with_its_value() {
    let world = World::default();
    let release = world.clone();
    let cache = Cache::<FusedKey, Module>::builder()
        .capacity(4)
        .observer(|_event| {})
        .release(move |module| release.release(module))
        .build()
        .unwrap();
    let device = DeviceId::new(Family::HOST, 0);
    for key in 0..3 {
        drop(cache.on(&device).get_or_build(&FusedKey(key), || world.build(key)).unwrap());
    }
    FUSE.store(true, Ordering::Relaxed);
    cache.evict_device(&device).wait().unwrap();
    FUSE.store(false, Ordering::Relaxed);
    assert_eq!((cache.len(), cache.statistics().released), (0, 3));
    drop(cache.on(&device).get_or_build(&FusedKey(1), || world.build(1)).unwrap());
}

static FUSE: AtomicBool = AtomicBool::new(false);

/// A key that cannot be cloned while [`FUSE`] is blown.
#[derive(PartialEq, Eq, Hash)]
struct FusedKey(u64);

impl Clone for FusedKey {
    fn clone(&self) -> Self {
        assert!(!FUSE.load(Ordering::Relaxed), "this key cannot be cloned now");
        Self(self.0)
    }
}
