//! How many native objects there are, for whoever wants to see that none is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the objects of one backend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live(Arc<AtomicUsize>);

/// Some objects, counted while this lives.
#[derive(Debug)]
pub(crate) struct Counted {
    live: Live,
    objects: usize,
}

impl Live {
    pub(crate) fn add(&self, objects: usize) -> Counted {
        self.0.fetch_add(objects, Ordering::Relaxed);
        Counted { live: self.clone(), objects }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.0.fetch_sub(self.objects, Ordering::Relaxed);
    }
}
