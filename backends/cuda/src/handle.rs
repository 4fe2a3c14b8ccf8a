//! The driver's handles: why they may go from thread to thread, and how many there are.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A context or a module of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) *mut c_void);

// SAFETY: the driver's objects belong to no thread: a context may be current on any, on several at
// once, and all calls that this crate makes may be made so. The pointer itself is never followed.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// How many handles this crate owns.
#[derive(Debug, Default)]
pub(crate) struct Live(AtomicUsize);

impl Live {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self, count: usize) {
        self.0.fetch_sub(count, Ordering::Release);
    }
}
