//! What a store has done in this process, counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Rejection;

const REASONS: usize = Rejection::NAMES.len();

/// Figures of one opened store, since it was opened and in this process alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Look-ups that gave a group.
    pub hits: u64,
    /// Look-ups that gave none: there was no file, or one that was rejected.
    pub misses: u64,
    /// Look-ups that waited for another thread or process to make the artifact.
    pub waited: u64,
    /// Look-ups that ended with an error: an untrusted file, a failing disk.
    pub read_failures: u64,
    /// Files that were there but not what was asked for, by the reason's name. Reasons that never
    /// occurred are left out.
    pub rejected: Vec<(&'static str, u64)>,
    /// Groups written.
    pub writes: u64,
    /// Groups that could not be written.
    pub write_failures: u64,
    /// Artifacts removed because somebody asked for it.
    pub removed: u64,
    /// Files removed since the store had outgrown its bound.
    pub pruned: u64,
    /// Temporary files of processes that died while writing, cleared away.
    pub swept: u64,
}

/// The live counters. Each is a fact of its own, so no order among them is promised.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) waited: AtomicU64,
    pub(crate) read_failures: AtomicU64,
    rejected: [AtomicU64; REASONS],
    pub(crate) writes: AtomicU64,
    pub(crate) write_failures: AtomicU64,
    pub(crate) removed: AtomicU64,
    pub(crate) pruned: AtomicU64,
    pub(crate) swept: AtomicU64,
}

impl Counters {
    pub(crate) fn reject(&self, rejection: &Rejection) {
        count(&self.misses);
        count(&self.rejected[rejection.index()]);
    }

    pub(crate) fn read(&self) -> Statistics {
        let rejected = Rejection::NAMES.into_iter().zip(&self.rejected);
        let rejected = rejected.map(|(name, counter)| (name, counter.load(Relaxed)));
        Statistics {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            waited: self.waited.load(Relaxed),
            read_failures: self.read_failures.load(Relaxed),
            rejected: rejected.filter(|(_, count)| *count > 0).collect(),
            writes: self.writes.load(Relaxed),
            write_failures: self.write_failures.load(Relaxed),
            removed: self.removed.load(Relaxed),
            pruned: self.pruned.load(Relaxed),
            swept: self.swept.load(Relaxed),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

pub(crate) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Relaxed);
}
