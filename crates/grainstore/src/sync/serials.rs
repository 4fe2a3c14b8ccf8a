//! Numbers that are given once in the process. They order nothing, so no model looks at them.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of such numbers.
pub(crate) struct Serials(AtomicU64);

impl Serials {
    /// The first number is 1.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(1))
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// So many numbers in a row.
    pub(crate) fn block(&self, count: u64) -> Range<u64> {
        let first = self.0.fetch_add(count, Ordering::Relaxed);
        first..first + count
    }
}
