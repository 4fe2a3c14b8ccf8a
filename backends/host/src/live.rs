//! How many shared objects are loaded: what a backend answers for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count that goes with its backend. Clones are the same count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

/// One that is loaded, for as long as this is there.
#[derive(Debug)]
pub(crate) struct Live(Count);

impl Count {
    pub(crate) fn one(&self) -> Live {
        self.0.fetch_add(1, Ordering::SeqCst);
        Live(self.clone())
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
