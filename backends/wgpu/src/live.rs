//! How many pipelines there are, for whoever wants to see that none is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the pipelines of one backend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live(Arc<AtomicUsize>);

/// Some pipelines, counted while this lives.
#[derive(Debug)]
pub(crate) struct Counted {
    live: Live,
    pipelines: usize,
}

impl Live {
    pub(crate) fn add(&self, pipelines: usize) -> Counted {
        self.0.fetch_add(pipelines, Ordering::Relaxed);
        Counted { live: self.clone(), pipelines }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.0.fetch_sub(self.pipelines, Ordering::Relaxed);
    }
}
