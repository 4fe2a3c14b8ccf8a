//! How many native handles a backend answers for: none is left when every module was unloaded and
//! every device destroyed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the native handles that a backend has made and not yet released. Clones are the same count.
///
/// What its [`count`](Self::count) says is what the conformance battery asks a backend for.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<AtomicUsize>);

/// Some handles, counted until this is dropped: for those that go with a value that holds them.
#[derive(Debug)]
#[must_use]
pub struct Counted {
    live: Live,
    handles: usize,
}

impl Live {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// So many more were made.
    pub fn add(&self, handles: usize) {
        self.0.fetch_add(handles, Ordering::Relaxed);
    }

    /// So many of those that were [added](Self::add) were released.
    pub fn remove(&self, handles: usize) {
        self.0.fetch_sub(handles, Ordering::Release);
    }

    /// So many more were made, and last as long as what this gives.
    pub fn hold(&self, handles: usize) -> Counted {
        self.add(handles);
        Counted { live: self.clone(), handles }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.remove(self.handles);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_and_not_released_counts() {
        let live = Live::default();
        let same = live.clone();
        live.add(3);
        same.remove(1);
        let held = same.hold(4);
        assert_eq!((live.count(), same.count()), (6, 6));
        drop(held);
        assert_eq!(live.count(), 2);
    }
}
