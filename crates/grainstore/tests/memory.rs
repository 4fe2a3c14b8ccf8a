//! What must leave memory where it was: B3, D6, and entries, drains and threads that come and go.
//! A hundred thousand times, since one byte each would show.
//!
//! Each test counts the bytes that its process holds, so each must be a process of its own, or run
//! alone: they take a lock.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use common::{Failure, failure};
use grainstore::{Cache, DeviceId, Family};

struct Counting;

static HELD: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is the system's own allocator; the counter beside it touches no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: passed on as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: passed on as it came.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALONE: Mutex<()> = Mutex::new(());

/// Runs it a few times, so that everything has the size it needs, and then so many times more.
/// Memory may differ by a page at the end.
fn holds_its_memory(times: u64, mut run: impl FnMut(u64)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let warm = times / 10;
    (0..warm).for_each(&mut run);
    let before = HELD.load(Ordering::Relaxed);
    (warm..warm + times).for_each(&mut run);
    let grown = HELD.load(Ordering::Relaxed) - before;
    assert!(grown < 4096, "{grown} bytes more after {times} times");
}

#[test]
fn b3_failed_builds() {
    let cache = Cache::<u64, u64>::builder().capacity(8).build().unwrap();
    let device = |key| DeviceId::new(Family::CUDA, key as u32);
    holds_its_memory(100_000, |key| {
        assert!(cache.on(&device(key)).get_or_build(&key, || Err(failure("no"))).is_err());
    });
}

#[test]
fn d6_devices_that_came_and_went() {
    let cache = Cache::<u64, u64>::builder().capacity(8).build().unwrap();
    holds_its_memory(100_000, |key| {
        let device = DeviceId::new(Family::HIP, key as u32);
        cache.on(&device).get_or_build(&1, || Ok::<_, Failure>(key)).unwrap();
        if key % 2 == 0 {
            // The others go as victims.
            drop(cache.evict_device(&device));
        }
    });
}

#[test]
fn d6_sets_of_devices_and_devices_that_have_nothing() {
    let cache = Cache::<u64, u64>::builder().build().unwrap();
    holds_its_memory(50_000, |key| {
        let devices = [0, 1, 2].map(|next| DeviceId::new(Family::HIP, key as u32 * 3 + next));
        drop(cache.on_all(&devices).get_or_build(&1, || Ok::<_, Failure>(key)).unwrap());
        drop(devices.map(|device| cache.evict_device(&device)));
    });
    assert_eq!(cache.len(), 0);
}

#[test]
fn victims_removals_and_clears() {
    let cache = Cache::<u64, Box<u64>>::builder().capacity(16).build().unwrap();
    holds_its_memory(100_000, |key| {
        cache.get_or_build(&key, || Ok::<_, Failure>(Box::new(key))).unwrap();
        if key % 7 == 0 {
            drop(cache.remove(&key));
        }
        if key % 1000 == 0 {
            drop(cache.clear());
        }
    });
}

#[test]
fn teardowns_while_a_reader_never_lets_go() {
    let cache = Cache::<u64, u64>::builder().build().unwrap();
    let device = DeviceId::new(Family::CUDA, 0);
    let stuck = cache.on(&device).get_or_build(&0, || Ok::<_, Failure>(0)).unwrap();
    holds_its_memory(20_000, |_| drop(cache.evict_device(&device)));
    assert_eq!(*stuck, 0);
}

#[test]
fn abandoned_values() {
    let cache = Cache::<u64, u64>::builder().capacity(1).build().unwrap();
    holds_its_memory(100_000, |key| {
        let pin = cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
        assert_eq!(cache.clear().abandon(), 1);
        drop(pin);
    });
}

#[test]
fn threads_that_come_and_go() {
    let cache = Cache::<u64, u64>::builder().capacity(4).build().unwrap();
    holds_its_memory(1_000, |key| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let pin = cache.get_or_build(&(key % 8), || Ok::<_, Failure>(key)).unwrap();
                assert!(cache.get(&(key % 8)).is_some());
                drop(pin);
            });
        });
    });
}

#[test]
fn caches_that_come_and_go() {
    holds_its_memory(5_000, |key| {
        let cache = Cache::<u64, u64>::builder().capacity(4).build().unwrap();
        for key in key..key + 8 {
            cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
            assert!(cache.get(&key).is_some());
        }
        let pin = cache.get(&(key + 7)).unwrap();
        drop(cache);
        assert_eq!(*pin, key + 7);
    });
}
