//! Numbers that are given once in the process: in a model, once in an execution, so that each execution
//! goes like the one before. They order nothing, so that no model looks at them.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of such numbers.
pub(crate) struct Serials(AtomicU64);

impl Serials {
    pub(crate) const BLOCK: u64 = 256;

    /// The first number is 1.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(1))
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// The same, out of a block of the caller's own, which is filled where it is used up: callers who
    /// take many seldom meet here.
    pub(crate) fn next_of(&self, block: &mut Range<u64>) -> u64 {
        block.next().unwrap_or_else(|| {
            let first = self.0.fetch_add(Self::BLOCK, Ordering::Relaxed);
            *block = first + 1..first + Self::BLOCK;
            first
        })
    }
}
