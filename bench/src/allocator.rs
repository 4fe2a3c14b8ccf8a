//! A counting global allocator, for memory beyond keys and values and for paths that must not
//! allocate. It counts only while asked to, so that the rows that measure time pay one load.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// The system's allocator, with an eye on it.
pub struct Counting;

static WATCHING: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicI64 = AtomicI64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

fn count(bytes: i64) {
    if WATCHING.load(Relaxed) {
        BYTES.fetch_add(bytes, Relaxed);
        CALLS.fetch_add(u64::from(bytes > 0), Relaxed);
    }
}

fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

// SAFETY: every call goes to the system's allocator as it came, which keeps the contract; counting
// touches no memory but its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(size(layout.size()));
        // SAFETY: the caller's own promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(size(layout.size()));
        // SAFETY: the caller's own promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        count(-size(layout.size()));
        count(size(new));
        // SAFETY: the caller's own promise.
        unsafe { System.realloc(at, layout, new) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-size(layout.size()));
        // SAFETY: the caller's own promise.
        unsafe { System.dealloc(at, layout) }
    }
}

/// What some work allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// Bytes that are still held at its end.
    pub bytes: i64,
    /// Allocations made, whether or not they are still held.
    pub calls: u64,
}

/// Runs some work and counts what it allocates, on all threads. Not to be nested.
pub fn watch<T>(work: impl FnOnce() -> T) -> (T, Allocated) {
    BYTES.store(0, Relaxed);
    CALLS.store(0, Relaxed);
    WATCHING.store(true, Relaxed);
    let result = work();
    WATCHING.store(false, Relaxed);
    (result, Allocated { bytes: BYTES.load(Relaxed), calls: CALLS.load(Relaxed) })
}
