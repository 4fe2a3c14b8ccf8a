//! Entries that do not move: a growing sequence of segments, four of a length, then four of twice
//! that length, so that not much more is made than is needed.
//!
//! An entry keeps its place and its memory until the cache is gone. So a look-up may touch any
//! entry it ever heard of, under no lock; whether it is still the one it looked for, the entry's
//! own state and identity say.

use super::entry::Entry;
use super::pins::Owner;
use crate::sync::{AtomicPtr, Ordering, Weak};

/// The first segment holds so many entries at least, and so many at most.
const SHORTEST: usize = if cfg!(loom) { 2 } else { 16 };
const LONGEST: usize = 1024;
/// Enough for every index there can be, however short the first one is; a power of two, so that any
/// number can be kept within its bounds by a mask.
const SEGMENTS: usize = 128;

/// The entries of one cache.
pub(crate) struct Arena<K, V> {
    /// The first entry of each segment; null until it is made.
    segments: [AtomicPtr<Entry<K, V>>; SEGMENTS],
    /// The logarithm of the first segment's length, which is a power of two.
    first: u32,
    /// That length.
    near: u32,
    owner: Weak<dyn Owner<V>>,
}

/// Where an index lies: its segment, and its place in it. The first segment is all of the first
/// power of two, and each power of two after that is four segments.
#[inline(always)]
fn locate(first: u32, index: u32) -> (usize, usize) {
    if index < 1 << first {
        return (0, index as usize);
    }
    let shifted = u64::from(index) + (1 << first);
    let power = shifted.ilog2();
    let offset = (shifted - (1 << power)) as usize;
    // A quarter of the power of two.
    let length = power - 2;
    let segment = (power - first) as usize * 4 + (offset >> length);
    (segment, offset & ((1 << length) - 1))
}

/// How long a segment is; those from 1 to 3 are not used.
fn segment_length(first: u32, segment: usize) -> usize {
    match segment / 4 {
        0 => 1 << first,
        level => (1 << first << level) / 4,
    }
}

/// The first index of a segment.
fn segment_start(first: u32, segment: usize) -> usize {
    let level = segment / 4;
    (1 << first << level) - (1 << first) + segment % 4 * segment_length(first, segment)
}

impl<K, V> Arena<K, V> {
    /// Room for so many entries in one piece, within reason.
    pub(crate) fn new(entries: usize, owner: Weak<dyn Owner<V>>) -> Self {
        let first = entries.clamp(SHORTEST, LONGEST).next_power_of_two().ilog2();
        let segments = std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut()));
        Self { segments, first, near: 1 << first, owner }
    }

    /// An entry by its index.
    ///
    /// # Safety
    /// The index was [reached](Self::reach), and the caller knows of it through the ledger's lock
    /// or the index of hashes, and so after that.
    #[inline]
    pub(crate) unsafe fn entry(&self, index: u32) -> &Entry<K, V> {
        // The first segment apart, as it takes no shifts.
        let (segment, offset) =
            if index < self.near { (0, index as usize) } else { locate(self.first, index) };
        let start = self.segments[segment & (SEGMENTS - 1)].load(Ordering::Acquire);
        debug_assert!(!start.is_null());
        // SAFETY: the segment is there, since the index was reached; it is so long that the offset
        // lies in it, and it is neither moved nor freed before the arena.
        unsafe { &*start.add(offset) }
    }

    /// Makes sure that the entry of that index exists. Under the ledger's lock. False for the one
    /// index that there can't be.
    pub(crate) fn reach(&self, index: u32) -> bool {
        // In words and slots an index has one added to it.
        if index == u32::MAX {
            return false;
        }
        let (segment, _) = locate(self.first, index);
        let Some(first) = self.segments.get(segment) else { return false };
        if first.load(Ordering::Relaxed).is_null() {
            let start = segment_start(self.first, segment);
            let make = |offset| Entry::new((start + offset) as u32, self.owner.clone());
            let length = segment_length(self.first, segment);
            let entries: Box<[Entry<K, V>]> = (0..length).map(make).collect();
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
                let length = segment_length(self.first, segment);
                let entries = std::ptr::slice_from_raw_parts_mut(first, length);
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
        let (mut next, mut made) = ((0, 0), 0);
        for index in 0..10_000 {
            let (segment, offset) = locate(4, index);
            if offset == 0 {
                made += segment_length(4, segment);
            }
            assert!(made <= index as usize * 5 / 4 + 2 * SHORTEST, "{made} made for {index}");
            assert_eq!(segment_start(4, segment) + offset, index as usize);
            assert!(offset < segment_length(4, segment));
            assert!((segment, offset) == next || (segment > next.0 && offset == 0));
            next = (segment, offset + 1);
        }
        assert!(locate(SHORTEST.ilog2(), u32::MAX).0 < SEGMENTS);
    }
}
