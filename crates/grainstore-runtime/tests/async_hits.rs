//! A hit of a task allocates nothing and starts nothing.
//!
//! A test program of its own, since it counts what its threads allocate.
#![allow(clippy::unwrap_used, reason = "a helper of a test may fail it as the test itself may")]

#[path = "suite/fake/mod.rs"]
mod fake;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fake::executor::block_on;
use fake::{Fake, spec};
use grainstore_runtime::Runtime;

struct Counting;

thread_local! {
    /// How often this thread has allocated.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is the system's own allocator; the counter beside it needs no memory of its.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: passed on as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on as it came.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_hit_of_a_task_allocates_nothing_and_starts_nothing() {
    let jobs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&jobs);
    let runtime = Runtime::builder()
        .backend(Fake::new())
        .blocking(move |job| {
            count.fetch_add(1, Ordering::SeqCst);
            job();
        })
        .build()
        .unwrap();
    let device = runtime.devices().remove(0);
    let saxpy = spec("saxpy");
    let by_id = || -> grainstore_runtime::KernelSpec { spec("by id") };
    let ask = async || {
        runtime.kernel_async(&device, &saxpy).await.unwrap();
        runtime.kernel_by_async(&device, "id", by_id).await.unwrap();
    };
    block_on(async {
        // The builds; and the first hits, for which this thread becomes known to the caches.
        ask().await;
        ask().await;
        let before = (ALLOCATIONS.get(), jobs.load(Ordering::SeqCst));
        for _ in 0..100 {
            ask().await;
        }
        assert_eq!((ALLOCATIONS.get(), jobs.load(Ordering::SeqCst)), before);
    });
}
