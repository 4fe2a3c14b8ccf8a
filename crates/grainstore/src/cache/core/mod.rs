//! The cache's machinery. A request walks through this folder: `mod.rs` finds what is there;
//! `miss.rs` joins a build (`ticket.rs`) or leads one (`lead.rs`); `room.rs` and `weight.rs` make
//! room for it, from `victim.rs` or `borrowers.rs`. `release.rs` lets go of one value, `sweep.rs` of
//! many at once. Below them lie the entries (`entry.rs`, `state.rs`, in `arena.rs` and `index.rs`),
//! the `ledger.rs` under its lock, and the pins of each thread in `readers`.

pub(crate) mod arena;
pub(crate) mod borrowers;
pub(crate) mod drains;
pub(crate) mod entry;
pub(crate) mod flight;
pub(crate) mod index;
pub(crate) mod lead;
pub(crate) mod ledger;
pub(crate) mod locked;
pub(crate) mod miss;
pub(crate) mod observe;
pub(crate) mod order;
pub(crate) mod pins;
pub(crate) mod readers;
pub(crate) mod release;
pub(crate) mod room;
pub(crate) mod state;
pub(crate) mod sweep;
pub(crate) mod task;
pub(crate) mod ticket;
pub(crate) mod victim;
pub(crate) mod waiting;
pub(crate) mod waits;
pub(crate) mod wakers;
pub(crate) mod weight;

use std::hash::Hash;

use self::arena::Arena;
use self::entry::{Entry, Grain, Identity};
use self::index::Index;
use self::ledger::Ledger;
use self::locked::Locked;
use self::readers::slot::{ReaderSlot, take_back};
use self::readers::{Reader, local};
use super::bookmark::Bookmark;
use super::builder::Config;
use super::devices::{DeviceSet, hash_with};
use super::pinned::Pinned;
use super::statistics::Statistics;
use crate::hashing::State;
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, Ordering, Serials, Weak, process_wide};

process_wide! {
    static IDS: Serials = Serials::new();
}

/// What a cache's key must be: hashed, compared and cloned by the cache, and dropped anywhere.
pub(crate) trait Key: Hash + Eq + Clone + Send + Sync + 'static {}
impl<K: Hash + Eq + Clone + Send + Sync + 'static> Key for K {}

/// Everything behind a cache's handles. It outlives them while a value of it is pinned.
pub(crate) struct Core<K, V> {
    /// Never used twice in the process.
    pub(crate) id: u64,
    pub(crate) config: Config<K, V>,
    hasher: State,
    arena: Arena<K, V>,
    index: Index,
    ledger: Mutex<Ledger>,
    /// Places may have become free, or an answer of `idle` is there.
    changed: Condvar,
    /// Caches whose values close over ours.
    borrowers: Mutex<Vec<Weak<dyn borrowers::Borrower>>>,
    /// The earliest time that a use can have now: later than the latest install.
    clock: AtomicU64,
    /// Hits that no reader counted.
    hits: AtomicU64,
    me: Weak<Self>,
    /// Keeps the core alive after its last handle, while it has live values.
    myself: Mutex<Option<Arc<Core<K, V>>>>,
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    pub(crate) fn new(config: Config<K, V>) -> Arc<Self> {
        readers::prepare();
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            id: IDS.next(),
            hasher: State::default(),
            arena: Arena::new(config.capacity.unwrap_or(0), me.clone()),
            index: Index::new(config.capacity.unwrap_or(0)),
            ledger: Mutex::new(Ledger::new(config.capacity)),
            changed: Condvar::new(),
            borrowers: Mutex::new(Vec::new()),
            clock: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            me: me.clone(),
            myself: Mutex::new(None),
            config,
        })
    }

    #[inline]
    pub(crate) fn hash(&self, key: &K, devices: &DeviceSet) -> u64 {
        hash_with(&self.hasher, key, devices)
    }

    /// How this cache hashes, for its handles to have at hand.
    pub(crate) fn hasher(&self) -> State {
        self.hasher.clone()
    }

    /// The resident value of this identity, pinned, in a straight line: this thread has been here
    /// before, the first entry of this tag is the one, and its next slot is free. Otherwise what the
    /// caller has to give up before it goes the long way.
    ///
    /// Nothing is called here that is not inlined, and every way out is a return: so a hit keeps all
    /// it needs in registers.
    #[inline(always)]
    pub(crate) fn find_at_once(
        &self,
        hash: u64,
        key: &K,
        devices: &DeviceSet,
    ) -> Result<Pinned<V>, Option<ReaderSlot>> {
        let Some(slot) = local::recent(self.id) else { return Err(None) };
        // The first entry of this hash's tag, as far as can be seen: nearly always of this hash.
        let Some(index) = self.index.probe(hash, Some) else { return Err(None) };
        let entry = self.entry(index);
        // SAFETY: the entry is pinned when this is asked.
        let is_it = |_: &V| unsafe { entry.identity() }.is(key, devices);
        self.pin_at_once(slot, &entry.grain, index, is_it)
    }

    /// What is resident in this grain, whose index that is, pinned in that slot, if it is `wanted`; then
    /// this is a use of it. Otherwise what the caller has to give up.
    #[inline(always)]
    fn pin_at_once(
        &self,
        slot: ReaderSlot,
        grain: &Grain<V>,
        index: u32,
        wanted: impl FnOnce(&V) -> bool,
    ) -> Result<Pinned<V>, Option<ReaderSlot>> {
        // A pin from here on, since the user's code may panic.
        let pin = Pinned::new(grain, Some(slot.announce(index, &grain.state)?));
        if wanted(&pin) && slot.note_at_once(index, &self.clock) {
            Ok(pin)
        } else {
            Err(pin.into_slot())
        }
    }

    /// The value of that build, if it is resident in this grain and `wanted`: see
    /// [`pin_at_once`](Self::pin_at_once).
    #[inline(always)]
    pub(crate) fn find_build(
        &self,
        slot: ReaderSlot,
        (grain, index, serial): (&Grain<V>, u32, u64),
        wanted: impl FnOnce(&V) -> bool,
    ) -> Result<Pinned<V>, Option<ReaderSlot>> {
        // A serial number is never used twice, and cannot change while the entry is pinned.
        let is_it = |value: &V| grain.serial() == serial && wanted(value);
        self.pin_at_once(slot, grain, index, is_it)
    }

    /// The value that a bookmark leads to: see [`find_build`](Self::find_build). The id is this
    /// cache's, which the caller has at hand.
    #[inline(always)]
    pub(crate) fn find_at(
        &self,
        id: u64,
        bookmark: &Bookmark,
        wanted: impl FnOnce(&V) -> bool,
    ) -> Result<Pinned<V>, Option<ReaderSlot>> {
        let place = bookmark.place().ok_or(None)?;
        // The slot is found by the bookmark's word for the cache: what it takes to find out which
        // cache is asked then goes on beside it.
        let slot = local::recent(place.cache).ok_or(None)?;
        if place.cache != id {
            return Err(None);
        }
        // SAFETY: the place is in this cache.
        let grain = unsafe { place.grain::<V>() };
        self.find_build(slot, (grain, grain.index, place.serial), wanted)
    }

    /// As [`find_at_once`](Self::find_at_once), where that has found nothing: in whatever slot of this
    /// thread's, and after an install. Takes no lock either.
    #[cold]
    #[inline(never)]
    fn find_beside(
        &self,
        left: Option<ReaderSlot>,
        hash: u64,
        key: &K,
        devices: &DeviceSet,
    ) -> Option<Pinned<V>> {
        take_back(left);
        let reader = local::known(self.id)?;
        self.index.probe(hash, |index| {
            let entry = self.entry(index);
            if entry.hash() != hash {
                return None;
            }
            let slot = reader.pin(index, &entry.grain.state)?;
            local::set_recent(self.id, slot);
            let pin = Pinned::new(&entry.grain, Some(slot));
            // SAFETY: the entry is pinned.
            let same = unsafe { entry.identity() }.is(key, devices);
            (same && reader.note(index, &self.clock)).then_some(pin)
        })
    }

    /// The resident value of this identity, pinned. Takes no lock; it may miss a value that is
    /// there while others come and go, so who needs to know looks again under the lock.
    fn find_anywhere(&self, hash: u64, key: &K, devices: &DeviceSet) -> Option<Pinned<V>> {
        let reader = self.reader();
        self.index.probe(hash, |index| {
            let entry = self.entry(index);
            if entry.hash() != hash {
                return None;
            }
            let pin = self.pin(&entry.grain, reader)?;
            // SAFETY: the entry is pinned.
            if !unsafe { entry.identity() }.is(key, devices) {
                return None;
            }
            self.note_hit(&entry.grain, &pin, reader);
            Some(pin)
        })
    }

    /// Pins what is resident: in a slot of this thread's where that can be, else by count.
    pub(crate) fn pin(
        &self,
        grain: &Grain<V>,
        reader: Option<&'static Reader>,
    ) -> Option<Pinned<V>> {
        match reader.and_then(|reader| reader.pin(grain.index, &grain.state)) {
            Some(slot) => {
                local::set_recent(self.id, slot);
                Some(Pinned::new(grain, Some(slot)))
            }
            None => pin_counted(grain),
        }
    }

    /// A hit is a use, but for the look-up that `idle` makes of the value it is asked about.
    pub(crate) fn note_hit(
        &self,
        grain: &Grain<V>,
        pin: &Pinned<V>,
        reader: Option<&'static Reader>,
    ) {
        let Some(reader) = reader else {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if pin.is_counted() && waits::is_asking_about(address(grain)) {
            reader.count_hit();
            return;
        }
        if !reader.note(grain.index, &self.clock) {
            self.grow_stamps(reader);
            reader.note(grain.index, &self.clock);
        }
    }

    /// Pins an entry that was located under the lock, if it is resident. No code of the key's runs.
    fn pin_located(&self, entry: &Entry<K, V>) -> Option<Pinned<V>> {
        let pin = pin_counted(&entry.grain)?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(pin)
    }

    /// A use by a look-up that had to take the lock.
    fn note_use_located(&self, mut ledger: Locked<'_>, entry: &Entry<K, V>) {
        if !waits::is_asking_about(address(&entry.grain)) {
            let now = self.now(&mut ledger);
            ledger.use_at(entry.grain.index, now);
        }
    }

    /// The entry that is resident or being built for this identity. Exact, under the lock.
    fn locate(&self, hash: u64, key: &K, devices: &DeviceSet) -> Option<&Entry<K, V>> {
        self.index.probe(hash, |index| {
            let entry = self.entry(index);
            // SAFETY: what is in the index is not vacant while the lock is held.
            let identity = unsafe { entry.identity() };
            let same = entry.hash() == hash && identity.is(key, devices);
            same.then_some(entry)
        })
    }

    /// The value of this identity if it is resident. Never builds and waits for no build.
    #[inline]
    pub(crate) fn get(&self, hash: u64, key: &K, devices: &DeviceSet) -> Option<Pinned<V>> {
        match self.find_at_once(hash, key, devices) {
            Ok(pin) => Some(pin),
            Err(left) => self.get_anyhow(left, hash, key, devices),
        }
    }

    /// The value if it can be had without a lock.
    #[inline]
    pub(crate) fn try_get(&self, hash: u64, key: &K, devices: &DeviceSet) -> Option<Pinned<V>> {
        match self.find_at_once(hash, key, devices) {
            Ok(pin) => Some(pin),
            Err(left) => self.find_beside(left, hash, key, devices),
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn get_anyhow(
        &self,
        left: Option<ReaderSlot>,
        hash: u64,
        key: &K,
        devices: &DeviceSet,
    ) -> Option<Pinned<V>> {
        take_back(left);
        self.find_anywhere(hash, key, devices).or_else(|| {
            let ledger = self.ledger();
            let entry = self.locate(hash, key, devices)?;
            let pin = self.pin_located(entry)?;
            self.note_use_located(ledger, entry);
            Some(pin)
        })
    }

    /// An entry by its index. Every index that is handed around comes from the ledger, which has
    /// reached it first, or from the index of hashes, where it was put after that.
    #[inline]
    fn entry(&self, index: u32) -> &Entry<K, V> {
        // SAFETY: as just said.
        unsafe { self.arena.entry(index) }
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
        statistics.hits += ledger.readers.iter().map(|reader| reader.hits()).sum::<u64>();
        drop(ledger);
        statistics.hits += self.hits.load(Ordering::Relaxed);
        statistics
    }
}

/// Pins what is resident, in the state word. The look-up that `idle` makes of the value it is asked
/// about leaves the claim on it.
#[cold]
fn pin_counted<V>(grain: &Grain<V>) -> Option<Pinned<V>> {
    let asks = grain.state.is_claimed() && waits::is_asking_about(address(grain));
    let pinned = if asks { grain.state.pin_beside_claim() } else { grain.state.pin() };
    pinned.then(|| Pinned::new(grain, None))
}

/// One more pin beside one that there is, in the state word.
pub(crate) fn pin_again<V>(grain: &Grain<V>) {
    let asks = grain.state.is_claimed() && waits::is_asking_about(address(grain));
    if !(asks && grain.state.pin_beside_claim()) {
        grain.state.pin_again();
    }
}

/// What a value is called in the stack of waits.
fn address<V>(grain: &Grain<V>) -> usize {
    std::ptr::from_ref(grain).addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cache, DeviceId, Family};

    /// What a hit costs is promised; this is the way that costs it.
    #[test]
    fn a_hit_like_the_one_before_goes_straight() {
        let cache = Cache::<u64, u64>::builder().build().unwrap();
        let devices = [0, 1].map(|index| DeviceId::new(Family::CUDA, index));
        for on in [&devices[..0], &devices[..1], &devices[..]] {
            let set = DeviceSet::of(on);
            cache.on_all(on).get_or_build(&1, || Ok::<_, std::io::Error>(7)).unwrap();
            drop(cache.on_all(on).get(&1));
            let found = cache.core().find_at_once(cache.hash(&1, &set), &1, &set);
            assert!(found.is_ok_and(|pin| *pin == 7 && !pin.is_counted()));
        }
    }

    /// A look-up that finds under the lock what it missed without is as good a use as any.
    #[test]
    fn a_use_that_is_noted_under_the_lock_is_the_latest() {
        let cache = Cache::<u64, u64>::builder().build().unwrap();
        let core = cache.core();
        for key in [1, 2] {
            cache.get_or_build(&key, || Ok::<_, std::io::Error>(key)).unwrap();
        }
        let entry = core.locate(cache.hash(&1, &DeviceSet::NONE), &1, &DeviceSet::NONE).unwrap();
        let coldest = || core.ledger().next_in_order(None).unwrap().1;
        assert_eq!(coldest(), entry.grain.index);
        core.note_use_located(core.ledger(), entry);
        assert_ne!(coldest(), entry.grain.index);
    }
}
