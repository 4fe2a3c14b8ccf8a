//! Entries that do not move: a growing sequence of segments, each twice as long as the last.
//!
//! An entry keeps its place and its memory until the cache is gone. So a look-up may touch any
//! entry it ever heard of, under no lock; whether it is still the one it looked for, the entry's
//! own state and identity say.

use super::entry::Entry;
use super::pins::Owner;
use crate::sync::{OnceLock, Weak};

const FIRST: usize = 16;
const SEGMENTS: usize = 28;

/// The entries of one cache.
pub(crate) struct Arena<K, V> {
    segments: [OnceLock<Box<[Entry<K, V>]>>; SEGMENTS],
    owner: Weak<dyn Owner<V>>,
}

/// Where an index lies: its segment, and its place in it.
fn locate(index: u32) -> (usize, usize) {
    let shifted = index as usize + FIRST;
    let segment = (shifted / FIRST).ilog2() as usize;
    (segment, shifted - (FIRST << segment))
}

impl<K, V> Arena<K, V> {
    pub(crate) fn new(owner: Weak<dyn Owner<V>>) -> Self {
        Self { segments: [const { OnceLock::new() }; SEGMENTS], owner }
    }

    /// The entry of that index, if its segment was ever made.
    pub(crate) fn get(&self, index: u32) -> Option<&Entry<K, V>> {
        let (segment, offset) = locate(index);
        self.segments.get(segment)?.get()?.get(offset)
    }

    /// Makes sure that the entry of that index exists. False past the last index there can be.
    pub(crate) fn reach(&self, index: u32) -> bool {
        let (segment, _) = locate(index);
        let Some(cell) = self.segments.get(segment) else { return false };
        cell.get_or_init(|| {
            let start = (FIRST << segment) - FIRST;
            let make = |offset| Entry::new((start + offset) as u32, self.owner.clone());
            (0..FIRST << segment).map(make).collect()
        });
        true
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
    }
}
