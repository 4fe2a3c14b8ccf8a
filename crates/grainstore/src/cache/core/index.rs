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

use crate::sync::{AtomicU32, AtomicU64, OnceLock, Ordering};

const SMALLEST: u32 = 4;
const LARGEST: u32 = 32;

/// The index of one cache.
pub(crate) struct Index {
    tables: [OnceLock<Box<[AtomicU64]>>; (LARGEST - SMALLEST) as usize],
    /// Which of them is in use.
    current: AtomicU32,
    /// How many words are in use; written under the ledger's lock.
    used: AtomicU32,
}

fn word(tag: u32, entry: u32) -> u64 {
    u64::from(tag) << 32 | (u64::from(entry) + 1)
}

fn tag_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The tag of a hash: its upper half.
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn make(level: u32) -> Box<[AtomicU64]> {
    (0..1_usize << (SMALLEST + level)).map(|_| AtomicU64::new(0)).collect()
}

impl Index {
    pub(crate) fn new() -> Self {
        let tables = [const { OnceLock::new() }; (LARGEST - SMALLEST) as usize];
        Self { tables, current: AtomicU32::new(0), used: AtomicU32::new(0) }
    }

    fn table(&self) -> &[AtomicU64] {
        let level = self.current.load(Ordering::Acquire);
        self.tables[level as usize].get_or_init(|| make(level))
    }

    /// The entries that may hold a key of this hash. Exact under the ledger's lock.
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let table = self.table();
        let mask = table.len() - 1;
        let tag = tag(hash);
        let home = tag as usize;
        (0..table.len())
            .map(move |step| table[(home + step) & mask].load(Ordering::Acquire))
            .take_while(|&word| word != 0)
            .filter(move |&word| tag_of(word) == tag)
            .map(|word| (word as u32).wrapping_sub(1))
    }

    /// Adds an entry. The caller holds the ledger's lock.
    pub(crate) fn insert(&self, hash: u64, entry: u32) {
        let used = self.used.load(Ordering::Relaxed) + 1;
        self.used.store(used, Ordering::Relaxed);
        if used as usize * 2 > self.table().len() {
            self.grow();
        }
        place(self.table(), word(tag(hash), entry));
    }

    fn grow(&self) {
        let level = self.current.load(Ordering::Relaxed);
        let Some(cell) = self.tables.get(level as usize + 1) else { return };
        let larger = make(level + 1);
        for slot in self.table() {
            let word = slot.load(Ordering::Relaxed);
            if word != 0 {
                place(&larger, word);
            }
        }
        if cell.set(larger).is_ok() {
            self.current.store(level + 1, Ordering::Release);
        }
    }

    /// Takes an entry out. The caller holds the ledger's lock.
    pub(crate) fn remove(&self, hash: u64, entry: u32) {
        let table = self.table();
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
        self.used.store(self.used.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
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

fn place(table: &[AtomicU64], word: u64) {
    let mask = table.len() - 1;
    let home = tag_of(word) as usize;
    let free = (0..table.len())
        .map(|step| &table[(home + step) & mask])
        .find(|slot| slot.load(Ordering::Relaxed) == 0);
    if let Some(slot) = free {
        slot.store(word, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

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
                assert!(index.candidates(hash).any(|found| found == entry));
            }
        }
        for entry in 0..300 {
            let found = model.get(&entry).is_some_and(|&h| index.candidates(h).any(|e| e == entry));
            assert_eq!(found, model.contains_key(&entry));
        }
        let words: usize = index.table().iter().filter(|w| w.load(Ordering::Relaxed) != 0).count();
        assert_eq!(words, model.len());
    }
}
