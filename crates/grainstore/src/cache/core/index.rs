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

use std::ptr::NonNull;

use super::ledger::Ledger;
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, UnsafeCell};

/// A first table has so many words at least, and so many at most.
const SMALLEST: usize = if cfg!(loom) { 4 } else { 16 };
const LARGEST: usize = 1 << 14;

/// The index of one cache.
///
/// The words and the mask of the table in use are two variables, so that a reader loads both at
/// once. A growth publishes the words first, and a reader loads the mask first: it may see a new
/// table with an old, smaller mask, and then misses, but never an old table with a new mask.
pub(crate) struct Index {
    words: AtomicPtr<AtomicU64>,
    mask: AtomicUsize,
    /// Under the ledger's lock.
    tables: UnsafeCell<Tables>,
}

/// All tables there have been, and how many words of the last are in use.
struct Tables {
    /// Each made by `Box::into_raw`.
    all: Vec<NonNull<[AtomicU64]>>,
    used: usize,
}

// SAFETY: the tables are owned, and hold only atomics.
unsafe impl Send for Tables {}

// SAFETY: `tables` is looked at and changed only by who shows that it holds the ledger's lock; all
// else is atomic.
unsafe impl Sync for Index {}

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

/// A table; its length is a power of two.
fn make(length: usize) -> Box<[AtomicU64]> {
    (0..length).map(|_| AtomicU64::new(0)).collect()
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

impl Tables {
    fn current(&self) -> &[AtomicU64] {
        // SAFETY: tables live until the index is dropped.
        self.all.last().map_or(&[], |table| unsafe { table.as_ref() })
    }

    /// Adds a table. Its words, to be published.
    fn push(&mut self, table: Box<[AtomicU64]>) -> *mut AtomicU64 {
        let table = NonNull::from(Box::leak(table));
        self.all.push(table);
        table.as_ptr().cast()
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        for table in self.all.drain(..) {
            // SAFETY: made by `push` of a box, freed here once; nobody reads any more.
            drop(unsafe { Box::from_raw(table.as_ptr()) });
        }
    }
}

impl Index {
    /// With room for so many entries, within reason.
    pub(crate) fn new(entries: usize) -> Self {
        let length = entries.saturating_mul(4) / 3 + 1;
        let length = length.clamp(SMALLEST, LARGEST).next_power_of_two();
        let mut tables = Tables { all: Vec::new(), used: 0 };
        let words = AtomicPtr::new(tables.push(make(length)));
        Self { words, mask: AtomicUsize::new(length - 1), tables: UnsafeCell::new(tables) }
    }

    /// The first entry that may hold a key of this hash and for which `take` gives something. Every
    /// entry that it is asked about has been inserted at some time. Exact under the ledger's lock.
    #[inline]
    pub(crate) fn probe<T>(&self, hash: u64, mut take: impl FnMut(u32) -> Option<T>) -> Option<T> {
        let mask = self.mask.load(Ordering::Acquire);
        let words = self.words.load(Ordering::Acquire);
        let tag = tag(hash);
        let mut at = tag as usize;
        loop {
            // SAFETY: the words are of a table that is at least as long as the mask that was loaded
            // before them says, and tables live as long as the index.
            let word = unsafe { &*words.add(at & mask) }.load(Ordering::Acquire);
            if word == 0 {
                return None;
            }
            if tag_of(word) == tag {
                let found = take((word as u32).wrapping_sub(1));
                if found.is_some() {
                    return found;
                }
            }
            at += 1;
            // A table is never full, but a reader may chase words that are being moved: no further
            // than once around.
            if at - tag as usize > mask {
                return None;
            }
        }
    }

    /// Adds an entry.
    pub(crate) fn insert(&self, ledger: &mut Ledger, hash: u64, entry: u32) {
        self.with_tables(ledger, |tables| {
            tables.used += 1;
            if tables.used > tables.current().len() / 4 * 3 {
                self.grow(tables);
            }
            place(tables.current(), word(tag(hash), entry));
        });
    }

    /// Takes an entry out, if it is there.
    pub(crate) fn remove(&self, ledger: &mut Ledger, hash: u64, entry: u32) {
        self.with_tables(ledger, |tables| {
            tables.used -= usize::from(take_out(tables.current(), hash, entry));
        });
    }

    /// What only the holder of the lock does. The cache has one ledger, and nobody gets at it but
    /// under its lock.
    fn with_tables<R>(&self, _locked: &mut Ledger, act: impl FnOnce(&mut Tables) -> R) -> R {
        // SAFETY: as just said, and `act` is this file's, which does not come back here.
        self.tables.with_mut(|tables| act(unsafe { &mut *tables }))
    }

    fn grow(&self, tables: &mut Tables) {
        let old = tables.current();
        let larger = make(old.len() * 2);
        let words = old.iter().map(|slot| slot.load(Ordering::Relaxed));
        words.filter(|&word| word != 0).for_each(|word| place(&larger, word));
        let mask = larger.len() - 1;
        self.words.store(tables.push(larger), Ordering::Release);
        self.mask.store(mask, Ordering::Release);
    }
}

/// Takes an entry's word out of the table and closes the hole. Whether it was there.
fn take_out(table: &[AtomicU64], hash: u64, entry: u32) -> bool {
    let mask = table.len() - 1;
    let wanted = word(tag(hash), entry);
    let mut hole = tag(hash) as usize & mask;
    for _ in table {
        match table[hole].load(Ordering::Relaxed) {
            0 => return false,
            word if word == wanted => break,
            _ => hole = (hole + 1) & mask,
        }
    }
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
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn finds(index: &Index, hash: u64, entry: u32) -> bool {
        index.probe(hash, |found| (found == entry).then_some(())).is_some()
    }

    #[test]
    fn its_table_is_as_long_as_it_has_to_be() {
        let (index, mut ledger) = (Index::new(0), Ledger::new(None));
        for entry in 0..1_000_u32 {
            index.insert(&mut ledger, u64::from(entry) << 32, entry);
            let (length, used) =
                index.with_tables(&mut ledger, |tables| (tables.current().len(), tables.used));
            assert_eq!(used, entry as usize + 1);
            // Never more than three quarters full, and it was, or nearly, before it was doubled.
            assert!(used * 4 <= length * 3, "{used} of {length}");
            assert!(length == SMALLEST || used * 8 > length * 3, "{used} of {length}");
        }
    }

    #[test]
    fn what_is_not_there_is_taken_out_without_harm() {
        let (index, mut ledger) = (Index::new(0), Ledger::new(None));
        for entry in 0..8_u32 {
            index.insert(&mut ledger, u64::from(entry % 3) << 32, entry);
        }
        for tag in 0..16_u64 {
            index.remove(&mut ledger, tag << 32, 99);
        }
        assert!((0..8_u32).all(|entry| finds(&index, u64::from(entry % 3) << 32, entry)));
        assert_eq!(index.with_tables(&mut ledger, |tables| tables.used), 8);
    }

    #[test]
    fn it_agrees_with_a_map_through_insertions_and_removals() {
        let (index, mut ledger) = (Index::new(0), Ledger::new(None));
        let mut model: HashMap<u32, u64> = HashMap::new();
        let mut seed = 1_u64;
        for round in 0..20_000_u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let entry = (seed >> 33) as u32 % 300;
            if let Some(hash) = model.remove(&entry) {
                index.remove(&mut ledger, hash, entry);
            } else {
                // Few distinct tags, so that runs are long and collide.
                let hash = (seed >> 59) << 32 | u64::from(round);
                index.insert(&mut ledger, hash, entry);
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
        let in_use = index.with_tables(&mut ledger, |tables| {
            let words = tables.current().iter().map(|word| word.load(Ordering::Relaxed));
            (words.filter(|&word| word != 0).count(), tables.used)
        });
        assert_eq!(in_use, (model.len(), model.len()));
    }
}
