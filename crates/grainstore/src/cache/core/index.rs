//! From a hash to the entry that may hold its key: open addressing, read under no lock.
//!
//! A word is `tag (32 bits) | entry (32 bits)`, zero when empty; the tag is the upper half of the
//! hash, and says where the word belongs as well. Writers hold the ledger's lock; a deletion moves
//! the words behind it back (Knuth, The Art of Computer Programming, volume 3, section 6.4,
//! algorithm R), so there are no tombstones and nothing to rebuild.
//!
//! A reader may therefore fail to see a key that is there, or find an entry that is no longer what
//! it was. Neither does harm: what it finds it pins and checks, and before it calls a key absent it
//! looks again under the lock. For the same reason the tables that were outgrown are left as they
//! are until the cache is gone: together they are smaller than the one in use.

use crate::sync::{AtomicPtr, AtomicU64, Mutex, Ordering};

const SMALLEST: usize = 16;

/// The index of one cache.
pub(crate) struct Index {
    /// The table in use: the last of those.
    current: AtomicPtr<Table>,
    tables: Mutex<Tables>,
}

/// All tables there have been, and how many words of the last are in use.
struct Tables {
    all: Vec<*mut Table>,
    used: usize,
}

// SAFETY: the pointers are to tables that this index owns, and a table is only atomics.
unsafe impl Send for Tables {}

/// One table; its length is a power of two.
pub(crate) struct Table(Box<[AtomicU64]>);

fn word(tag: u32, entry: u32) -> u64 {
    u64::from(tag) << 32 | (u64::from(entry) + 1)
}

fn tag_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The tag of a hash: its upper half.
#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl Table {
    fn new(length: usize) -> Self {
        Self((0..length).map(|_| AtomicU64::new(0)).collect())
    }

    fn mask(&self) -> usize {
        self.0.len() - 1
    }

    /// The word at a place that goes around.
    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.0[at & (self.0.len() - 1)].load(Ordering::Acquire)
    }

    fn place(&self, word: u64) {
        let home = tag_of(word) as usize;
        let free = (0..self.0.len())
            .map(|step| &self.0[(home + step) & self.mask()])
            .find(|slot| slot.load(Ordering::Relaxed) == 0);
        if let Some(slot) = free {
            slot.store(word, Ordering::Release);
        }
    }
}

impl Index {
    pub(crate) fn new() -> Self {
        let first = Box::into_raw(Box::new(Table::new(SMALLEST)));
        let tables = Mutex::new(Tables { all: vec![first], used: 0 });
        Self { current: AtomicPtr::new(first), tables }
    }

    #[inline]
    fn table(&self) -> &Table {
        // SAFETY: tables live as long as the index.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// The first entry that may hold a key of this hash and for which `take` gives something. Every
    /// entry that it is asked about has been inserted at some time. Exact under the ledger's lock.
    #[inline]
    pub(crate) fn probe<T>(&self, hash: u64, mut take: impl FnMut(u32) -> Option<T>) -> Option<T> {
        let table = self.table();
        let tag = tag(hash);
        // A table is never full, but a reader may chase words that are being moved: no further
        // than once around.
        for step in 0..table.0.len() {
            let word = table.word(tag as usize + step);
            if word == 0 {
                return None;
            }
            if tag_of(word) == tag {
                let found = take((word as u32).wrapping_sub(1));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Adds an entry. The caller holds the ledger's lock.
    pub(crate) fn insert(&self, hash: u64, entry: u32) {
        let mut tables = self.tables.lock();
        tables.used += 1;
        if tables.used * 2 > self.table().0.len() {
            self.grow(&mut tables);
        }
        self.table().place(word(tag(hash), entry));
    }

    fn grow(&self, tables: &mut Tables) {
        let old = self.table();
        let larger = Table::new(old.0.len() * 2);
        let words = old.0.iter().map(|slot| slot.load(Ordering::Relaxed));
        words.filter(|&word| word != 0).for_each(|word| larger.place(word));
        let larger = Box::into_raw(Box::new(larger));
        tables.all.push(larger);
        self.current.store(larger, Ordering::Release);
    }

    /// Takes an entry out. The caller holds the ledger's lock.
    pub(crate) fn remove(&self, hash: u64, entry: u32) {
        let mut tables = self.tables.lock();
        let table = &self.table().0;
        let mask = table.len() - 1;
        let wanted = word(tag(hash), entry);
        let home = tag(hash) as usize & mask;
        let reach = (0..table.len()).map(|step| (home + step) & mask);
        let Some(mut hole) = reach
            .take_while(|&at| table[at].load(Ordering::Relaxed) != 0)
            .find(|&at| table[at].load(Ordering::Relaxed) == wanted)
        else {
            return;
        };
        tables.used -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let word = table[at].load(Ordering::Relaxed);
            if word == 0 || at == hole {
                break;
            }
            // A word may fill the hole if the hole lies between its home and where it is.
            let home = tag_of(word) as usize & mask;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                table[hole].store(word, Ordering::Release);
                hole = at;
            }
        }
        table[hole].store(0, Ordering::Release);
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        for table in self.tables.lock().all.drain(..) {
            // SAFETY: made by `Box::into_raw`, freed here once; nobody reads any more.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn finds(index: &Index, hash: u64, entry: u32) -> bool {
        index.probe(hash, |found| (found == entry).then_some(())).is_some()
    }

    #[test]
    fn it_agrees_with_a_map_through_insertions_and_removals() {
        let index = Index::new();
        let mut model: HashMap<u32, u64> = HashMap::new();
        let mut seed = 1_u64;
        for round in 0..20_000_u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let entry = (seed >> 33) as u32 % 300;
            if let Some(hash) = model.remove(&entry) {
                index.remove(hash, entry);
            } else {
                // Few distinct tags, so that runs are long and collide.
                let hash = (seed >> 59) << 32 | u64::from(round);
                index.insert(hash, entry);
                model.insert(entry, hash);
            }
            for (&entry, &hash) in model.iter().take(5) {
                assert!(finds(&index, hash, entry));
            }
        }
        for entry in 0..300 {
            let found = model.get(&entry).is_some_and(|&hash| finds(&index, hash, entry));
            assert_eq!(found, model.contains_key(&entry));
        }
        let words = index.table().0.iter().filter(|word| word.load(Ordering::Relaxed) != 0);
        assert_eq!(words.count(), model.len());
    }
}
