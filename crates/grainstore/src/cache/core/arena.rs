//! Entries that do not move: a growing sequence of segments, each twice as long as the last.
//!
//! An entry keeps its place and its memory until the cache is gone. So a look-up may touch any
//! entry it ever heard of, under no lock; whether it is still the one it looked for, the entry's
//! own state and identity say.

use super::entry::Entry;
use super::pins::Owner;
use crate::sync::{AtomicPtr, Ordering, Weak};

const FIRST: usize = 16;
const SEGMENTS: usize = 28;

/// The entries of one cache.
pub(crate) struct Arena<K, V> {
    /// The first entry of each segment; null until it is made.
    segments: [AtomicPtr<Entry<K, V>>; SEGMENTS],
    owner: Weak<dyn Owner<V>>,
}

/// Where an index lies: its segment, and its place in it.
#[inline]
fn locate(index: u32) -> (usize, usize) {
    let shifted = index as usize + FIRST;
    let segment = (shifted / FIRST).ilog2() as usize;
    (segment, shifted - (FIRST << segment))
}

impl<K, V> Arena<K, V> {
    pub(crate) fn new(owner: Weak<dyn Owner<V>>) -> Self {
        Self { segments: [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS], owner }
    }

    /// An entry by its index.
    ///
    /// # Safety
    /// The index was [reached](Self::reach), and the caller knows of it through the ledger's lock
    /// or the index of hashes, and so after that.
    #[inline]
    pub(crate) unsafe fn entry(&self, index: u32) -> &Entry<K, V> {
        let (segment, offset) = locate(index);
        let first = self.segments[segment].load(Ordering::Acquire);
        debug_assert!(!first.is_null());
        // SAFETY: the segment is there, since the index was reached; it is so long that the offset
        // lies in it, and it is neither moved nor freed before the arena.
        unsafe { &*first.add(offset) }
    }

    /// Makes sure that the entry of that index exists. Under the ledger's lock. False past the last
    /// index there can be.
    pub(crate) fn reach(&self, index: u32) -> bool {
        let (segment, _) = locate(index);
        let Some(first) = self.segments.get(segment) else { return false };
        if first.load(Ordering::Relaxed).is_null() {
            let start = (FIRST << segment) - FIRST;
            let make = |offset| Entry::new((start + offset) as u32, self.owner.clone());
            let entries: Box<[Entry<K, V>]> = (0..FIRST << segment).map(make).collect();
            first.store(Box::into_raw(entries).cast(), Ordering::Release);
        }
        true
    }
}

impl<K, V> Drop for Arena<K, V> {
    fn drop(&mut self) {
        for (segment, first) in self.segments.iter().enumerate() {
            let first = first.load(Ordering::Relaxed);
            if !first.is_null() {
                let entries = std::ptr::slice_from_raw_parts_mut(first, FIRST << segment);
                // SAFETY: `reach` made the segment of a box of just this length.
                drop(unsafe { Box::from_raw(entries) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_fill_each_segment_before_the_next() {
        assert_eq!(locate(0), (0, 0));
        assert_eq!(locate(15), (0, 15));
        assert_eq!(locate(16), (1, 0));
        assert_eq!(locate(47), (1, 31));
        assert_eq!(locate(48), (2, 0));
        assert_eq!(locate(u32::MAX - 16).0, SEGMENTS - 1);
    }
}
