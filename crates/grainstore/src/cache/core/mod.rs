//! The cache's machinery. A request walks through this folder: `mod.rs` finds; `miss.rs` joins a
//! build (`ticket.rs`) or leads one (`lead.rs`); `room.rs` and `weight.rs` make room for it;
//! `release.rs` lets go of values, `sweep.rs` of many at once.

pub(crate) mod arena;
pub(crate) mod drains;
pub(crate) mod entry;
pub(crate) mod flight;
pub(crate) mod index;
pub(crate) mod lead;
pub(crate) mod ledger;
pub(crate) mod locked;
pub(crate) mod miss;
pub(crate) mod observe;
pub(crate) mod pins;
pub(crate) mod release;
pub(crate) mod room;
pub(crate) mod state;
pub(crate) mod sweep;
pub(crate) mod ticket;
pub(crate) mod waits;
pub(crate) mod weight;

use std::hash::Hash;

use foldhash::fast::RandomState;

use self::arena::Arena;
use self::entry::{Entry, Identity};
use self::index::Index;
use self::ledger::Ledger;
use self::locked::Locked;
use super::builder::Config;
use super::devices::{DeviceSet, hash_key};
use super::pinned::Pinned;
use super::statistics::Statistics;
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, Ordering, Weak};

/// What a cache's key must be: hashed, compared and cloned by the cache, and dropped anywhere.
pub(crate) trait Key: Hash + Eq + Clone + Send + Sync + 'static {}
impl<K: Hash + Eq + Clone + Send + Sync + 'static> Key for K {}

/// Everything behind a cache's handles. It outlives them while a value of it is pinned.
pub(crate) struct Core<K, V> {
    /// Never used twice in the process.
    pub(crate) id: u64,
    pub(crate) config: Config<K, V>,
    hasher: RandomState,
    arena: Arena<K, V>,
    index: Index,
    ledger: Mutex<Ledger>,
    /// Places may have become free, or an answer of `idle` is there.
    changed: Condvar,
    /// Caches whose values close over ours.
    borrowers: Mutex<Vec<Weak<dyn room::Borrower>>>,
    clock: AtomicU64,
    hits: AtomicU64,
    /// Keeps the core alive after its last handle, while it has live values.
    myself: Mutex<Option<Arc<Core<K, V>>>>,
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    pub(crate) fn new(config: Config<K, V>) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            hasher: RandomState::default(),
            arena: Arena::new(me.clone()),
            index: Index::new(),
            ledger: Mutex::new(Ledger::new(config.capacity)),
            changed: Condvar::new(),
            borrowers: Mutex::new(Vec::new()),
            clock: AtomicU64::new(1),
            hits: AtomicU64::new(0),
            myself: Mutex::new(None),
            config,
        })
    }

    pub(crate) fn hash(&self, key: &K, devices: &DeviceSet) -> u64 {
        devices.mix(&self.hasher, hash_key(&self.hasher, key))
    }

    /// The resident value of this identity, pinned. Takes no lock; it may miss a value that is
    /// there while others come and go, so who needs to know looks again under the lock.
    pub(crate) fn find(&self, hash: u64, key: &K, devices: &DeviceSet) -> Option<Pinned<V>> {
        let entries = self.index.candidates(hash).filter_map(|index| self.arena.get(index));
        entries.filter(|entry| entry.hash() == hash).find_map(|entry| self.pin_if(entry, key, devices))
    }

    fn pin_if(&self, entry: &Entry<K, V>, key: &K, devices: &DeviceSet) -> Option<Pinned<V>> {
        let grain = &entry.grain;
        // A look-up that `idle` makes of the value it is asked about is neither a pin nor a use.
        let asks = grain.state.is_claimed() && waits::is_asking_about(address(grain));
        let pinned = if asks { grain.state.pin_beside_claim() } else { grain.state.pin() };
        let pin = pinned.then(|| Pinned::from_pin(grain))?;
        // SAFETY: the entry is pinned.
        let identity = unsafe { entry.identity() };
        if identity.key != *key || identity.devices != *devices {
            return None;
        }
        self.note_hit(entry, asks);
        Some(pin)
    }

    fn note_hit(&self, entry: &Entry<K, V>, asks: bool) {
        self.hits.fetch_add(1, Ordering::Relaxed);
        if !asks {
            entry.use_at(self.now());
        }
    }

    /// Pins an entry that was located under the lock, if it is resident. No code of the key's runs.
    fn pin_located(&self, entry: &Entry<K, V>) -> Option<Pinned<V>> {
        let grain = &entry.grain;
        let asks = grain.state.is_claimed() && waits::is_asking_about(address(grain));
        let pinned = if asks { grain.state.pin_beside_claim() } else { grain.state.pin() };
        let pin = pinned.then(|| Pinned::from_pin(grain))?;
        self.note_hit(entry, asks);
        Some(pin)
    }

    /// The next moment of the cache's own clock.
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// The entry that is resident or being built for this identity. Exact, under the lock.
    fn locate(&self, hash: u64, key: &K, devices: &DeviceSet) -> Option<&Entry<K, V>> {
        let entries = self.index.candidates(hash).filter_map(|index| self.arena.get(index));
        entries.filter(|entry| entry.hash() == hash).find(|entry| {
            // SAFETY: what is in the index is not vacant while the lock is held.
            let identity = unsafe { entry.identity() };
            identity.key == *key && identity.devices == *devices
        })
    }

    /// The value of this identity if it is resident. Never builds and waits for no build.
    pub(crate) fn get(&self, key: &K, devices: &DeviceSet) -> Option<Pinned<V>> {
        let hash = self.hash(key, devices);
        self.find(hash, key, devices).or_else(|| {
            let ledger = self.ledger.lock();
            let pin = self.locate(hash, key, devices).and_then(|entry| self.pin_located(entry));
            drop(ledger);
            pin
        })
    }

    /// An entry by its index. Every index that is handed around has one.
    #[allow(clippy::expect_used)]
    fn entry(&self, index: u32) -> &Entry<K, V> {
        self.arena.get(index).expect("an index comes from the ledger, which reached it")
    }

    fn ledger(&self) -> Locked<'_> {
        Locked::new(self.ledger.lock())
    }

    /// A held entry was decided about: wakes who waits for that. Under the lock.
    fn note_change(&self, ledger: &mut Locked<'_>) {
        ledger.changes += 1;
        if ledger.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Something may have made room: wakes who waits for that. Under the lock.
    fn note_opening(&self, ledger: &mut Locked<'_>) {
        ledger.openings += 1;
        self.note_change(ledger);
        if !ledger.room_wakers.is_empty() {
            let wakers = std::mem::take(&mut ledger.room_wakers);
            ledger.wake_later(wakers);
        }
    }

    /// Gives the entry back to the free list. The caller owns it, and drops what it gets under no
    /// lock.
    #[must_use]
    fn free_entry(&self, ledger: &mut Ledger, index: u32) -> Identity<K> {
        let entry = self.entry(index);
        // SAFETY: the caller owns the entry; its value is gone or never was.
        let identity = unsafe { entry.vacate() };
        ledger.give_entry(index);
        identity
    }

    pub(crate) fn len(&self) -> usize {
        self.ledger().resident
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let ledger = self.ledger();
        let mut statistics = ledger.statistics;
        statistics.entries = (ledger.resident + ledger.building) as u64;
        statistics.building = ledger.building as u64;
        statistics.retired = ledger.retired as u64;
        drop(ledger);
        statistics.hits += self.hits.load(Ordering::Relaxed);
        statistics
    }
}

/// What a value is called in the stack of waits.
fn address<V>(grain: &entry::Grain<V>) -> usize {
    std::ptr::from_ref(grain).addr()
}
