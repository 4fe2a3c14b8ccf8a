//! What must leave memory where it was: B3, D6, and entries, drains and threads that come and go.
//! A hundred thousand times, since one byte each would show. And that a hit allocates nothing.
//!
//! Each test counts the bytes that its process holds, so each must be a process of its own, or run
//! alone: they take a lock.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use common::{Failure, failure};
use grainstore::{Cache, DeviceId, ElementType, Family, KernelKey, PlanKey, TensorDesc};

struct Counting;

static HELD: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    /// How often this thread has allocated.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is the system's own allocator; the counters beside it need no memory of its.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Ordering::Relaxed);
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
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

/// Who waits for whom is forgotten when nobody waits any more.
#[test]
fn b2_builds_inside_builds_and_inside_releases() {
    let inner = Cache::<u64, u64>::builder().capacity(2).build().unwrap();
    let lent = inner.clone();
    let release = move |key: u64| drop(lent.get_or_build(&(key % 3), || Ok::<_, Failure>(key)));
    let outer = Cache::<u64, u64>::builder().capacity(2).release(release).build().unwrap();
    holds_its_memory(20_000, |key| {
        let build = || {
            let pin = inner.get_or_build(&key, || Ok::<_, Failure>(key));
            inner.get_or_build(&(key + 1), || pin.map(|pin| *pin)).map(|pin| *pin)
        };
        outer.get_or_build(&key, build).unwrap();
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

/// Values abandoned with a pin, and builds abandoned that come to something or to nothing: the last
/// of them ends a cache that has no handle any more.
#[test]
fn caches_that_end_after_what_they_abandoned() {
    holds_its_memory(5_000, |key| {
        let cache = Cache::<u64, u64>::builder().capacity(4).build().unwrap();
        let pin = cache.get_or_build(&1, || Ok::<_, Failure>(key)).unwrap();
        assert_eq!(cache.clear().abandon(), 1);
        for fails in [false, true] {
            let told = cache.get_or_build(&2, || {
                assert_eq!(cache.remove(&2).abandon(), 1);
                if fails { Err(failure("no")) } else { Ok(key) }
            });
            assert!(told.is_err());
        }
        drop(cache);
        assert_eq!(*pin, key);
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
        // One that never had a value, and one that has none any more.
        let empty = || Cache::<u64, u64>::builder().build().unwrap();
        drop(empty());
        let cache = empty();
        cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
        assert_eq!(cache.clear().released(), 1);
    });
}

#[test]
fn caches_of_plans_that_come_and_go_above_one_of_kernels() {
    let kernels = Cache::<u64, u64>::builder().capacity(4).build().unwrap();
    holds_its_memory(5_000, |key| {
        let plans = Cache::<u64, u64>::builder().borrows_from(&kernels).build().unwrap();
        plans.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
    });
}

/// Hits of every kind on one key, each a few times, since the first may make what later ones use.
fn hits_allocate_nothing<K: std::hash::Hash + Eq + Clone + Send + Sync + 'static>(key: &K) {
    let cache = Cache::<K, u64>::builder().capacity(4).idle(|_| true).build().unwrap();
    let device = DeviceId::new(Family::CUDA, 0);
    let view = cache.on(&device);
    let mut slot = cache.slot(key.clone());
    let no_build = || Err::<u64, Failure>(failure("it is there"));
    for look_up in ["get", "get_or_build", "async", "view", "slot"] {
        cache.get_or_build(key, || Ok::<_, Failure>(1)).unwrap();
        view.get_or_build(key, || Ok::<_, Failure>(1)).unwrap();
        for round in 0..100 {
            let before = ALLOCATIONS.get();
            let pin = match look_up {
                "get" => cache.get(key),
                "get_or_build" => cache.get_or_build(key, no_build).ok(),
                "async" => {
                    let future = pin!(cache.get_or_build_async(key, async { no_build() }));
                    match future.poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(answer) => answer.ok(),
                        Poll::Pending => None,
                    }
                }
                "view" => cache.on(&device).get(key),
                _ => slot.get(),
            };
            let clone = pin.clone();
            assert!(clone.is_some(), "{look_up} is no hit");
            drop((pin, clone));
            let allocated = ALLOCATIONS.get() - before;
            assert!(round == 0 || allocated == 0, "{look_up} allocated {allocated} times");
        }
    }
}

#[test]
fn b0_a_hit_allocates_nothing() {
    hits_allocate_nothing(&7_u64);
    hits_allocate_nothing(&"a text that is long enough to be allocated".to_owned());
    let kernel = KernelKey::builder("saxpy").target("sm_90a").source("..").define("A", "1");
    hits_allocate_nothing(&kernel.build().unwrap());
    let tensor = TensorDesc::contiguous(ElementType::F16, &[1, 128, 4096]).unwrap();
    let plan = PlanKey::builder().artifact("model").input(tensor.clone()).output(tensor);
    hits_allocate_nothing(&plan.build().unwrap());
}
