//! Visible readers: pins that no two threads write to the same cache line for.
//!
//! After BRAVO (Dave Dice and Alex Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX
//! ATC 2019): a reader announces itself in a slot of its own instead of a shared counter, and who
//! wants the reader gone looks at all slots. Here each thread has one [`Reader`] for each cache it
//! uses, with a line of slots; a pin is the entry's number in one of them. Where the slots are all
//! taken, and where the entry's state forbids it, a pin is counted in the state word instead.
//!
//! Two races decide everything, both between a store and a load of either side:
//!
//! * **pin against claim.** The reader swaps its slot, then loads the state; the claimer swaps the
//!   state, then loads the slots. All four are sequentially consistent, so at least one side sees
//!   the other: the reader sees the claim, takes its announcement back and is counted instead, or
//!   the claimer sees the pin. The same holds for the retiring of an entry.
//! * **unpin against watch.** The reader clears its slot, then loads `watched`; who waits for the
//!   pin's end sets the slot's bit in `watched`, then loads the slot. The reader's side is a plain
//!   store and a plain load; the watcher, who is rare, pays for both with [`barrier`].
//!
//! A reader's memory is never freed: an unpin still looks at it when the cache may be gone. Readers
//! that are done with go to a pool, and are used again for other threads and caches.

pub(crate) mod barrier;
pub(crate) mod local;
pub(crate) mod slot;
mod watch;

use self::slot::ReaderSlot;
use super::state::State;
use crate::sync::{
    Arc, AtomicU32, AtomicU64, Mutex, Ordering, UnsafeCell, Weak, fence, process_wide,
};

/// The words of a reader's first line: the slots, and behind them one other. A power of two, so that
/// any slot's number can be kept within its bounds by a mask.
const WORDS: usize = if cfg!(loom) { 4 } else { 16 };
type Line = [AtomicU32; WORDS];

/// Pins that one thread can hold without counting.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { WORDS - 1 };

/// The line's word with a bit for each slot whose pin somebody waits for.
const WATCHED: usize = WORDS - 1;

/// A reader that has stamps has so many at least.
const FEWEST_STAMPS: usize = if cfg!(loom) { 2 } else { 16 };

/// The bit of the watched word that says that unpins have to fence; see [`barrier`].
const FENCED: u32 = 1 << 31;

/// What a reader's cache is asked when a watched pin is gone.
pub(crate) trait Watcher: Send + Sync {
    fn watched_pin_gone(self: Arc<Self>, reader: &'static Reader, slot: usize);
    /// The reader's thread has ended; another thread may take the reader over.
    fn thread_gone(self: Arc<Self>, reader: &'static Reader);
}

/// One thread's announcements to one cache.
#[repr(C, align(64))]
pub(crate) struct Reader {
    /// In each slot the entry that it pins, plus one; zero is free. Taken by the owning thread
    /// alone, set free by whoever drops the pin.
    line: Line,
    own: Own,
}

/// What only the owning thread writes, as long as the reader has one; others read it under the
/// ledger's lock.
#[repr(C, align(64))]
struct Own {
    /// The cache that this reader is for; zero in the pool.
    cache: AtomicU64,
    /// The owner's clock: the time of its latest use. It goes on by one with each hit, and by more
    /// where it was behind the cache's.
    clock: AtomicU64,
    /// By how much more, in all: the rest are hits.
    skipped: AtomicU64,
    /// When the owner last used each entry.
    stamps: UnsafeCell<Box<[AtomicU64]>>,
    watcher: Mutex<Option<Weak<dyn Watcher>>>,
}

// SAFETY: everything but `stamps` is atomic or locked. `stamps` is replaced by the owning thread
// under the ledger's lock, read by the owning thread, and by others under the ledger's lock; a
// reader changes its owner under that lock, too.
unsafe impl Sync for Reader {}

process_wide! {
    /// Readers that no cache uses now.
    static POOL: Mutex<Vec<&'static Reader>> = Mutex::new(Vec::new());
}

/// Asks the kernel now for what unpins rely on. In a process that has threads already that takes it
/// some milliseconds, which would otherwise be in the cache's first request.
pub(crate) fn prepare() {
    barrier::is_asymmetric();
}

impl Reader {
    /// A reader for this cache, from the pool if there is one. Its figures start at zero.
    pub(crate) fn take(cache: u64, watcher: Weak<dyn Watcher>) -> &'static Self {
        let reader = POOL.lock().pop().unwrap_or_else(|| {
            Box::leak(Box::new(Self {
                line: std::array::from_fn(|_| AtomicU32::new(0)),
                own: Own {
                    cache: AtomicU64::new(0),
                    skipped: AtomicU64::new(0),
                    clock: AtomicU64::new(0),
                    stamps: UnsafeCell::new(Box::default()),
                    watcher: Mutex::new(None),
                },
            }))
        });
        reader.line[WATCHED]
            .store(if barrier::is_asymmetric() { 0 } else { FENCED }, Ordering::SeqCst);
        // The id and the watcher change together, for a thread that ends just then.
        let mut own = reader.own.watcher.lock();
        *own = Some(watcher);
        reader.own.cache.store(cache, Ordering::Release);
        drop(own);
        reader
    }

    /// Back to the pool. The cache is gone, and with it every pin and everybody who used this
    /// reader for it.
    pub(crate) fn give_back(&'static self) {
        debug_assert!(self.line[..SLOTS].iter().all(|slot| slot.load(Ordering::Relaxed) == 0));
        {
            let mut watcher = self.own.watcher.lock();
            *watcher = None;
            self.own.cache.store(0, Ordering::Release);
        }
        self.own.skipped.store(0, Ordering::Relaxed);
        self.own.clock.store(0, Ordering::Relaxed);
        // SAFETY: the cache is gone, so nobody else looks at the stamps.
        drop(self.own.stamps.with_mut(|stamps| unsafe { std::mem::take(&mut *stamps) }));
        // Under loom a thread may end when the statics are gone.
        if !cfg!(loom) {
            POOL.lock().push(self);
        }
    }

    pub(crate) fn is_for(&self, cache: u64) -> bool {
        self.own.cache.load(Ordering::Acquire) == cache
    }

    /// Pins an entry that is resident and not claimed, in a free slot. By the owning thread.
    pub(crate) fn pin(&'static self, entry: u32, state: &State) -> Option<ReaderSlot> {
        let slot = (0..SLOTS).find(|&slot| self.is_free(slot))?;
        ReaderSlot::new(self, slot).announce(entry, state).map_err(slot::take_back).ok()
    }

    /// A slot may be taken while it is still watched on behalf of an entry that it no longer pins.
    #[inline]
    fn is_free(&self, slot: usize) -> bool {
        self.line[slot].load(Ordering::Acquire) == 0
    }

    #[cold]
    fn end_watched(&'static self, slot: usize) {
        if self.line[WATCHED].load(Ordering::SeqCst) & FENCED != 0 {
            fence(Ordering::SeqCst);
        }
        if self.line[WATCHED].load(Ordering::SeqCst) & (1 << slot) != 0 {
            self.tell_watcher(slot);
        }
    }

    fn tell_watcher(&'static self, slot: usize) {
        let watcher = self.own.watcher.lock().clone();
        if let Some(watcher) = watcher.and_then(|watcher| watcher.upgrade()) {
            watcher.watched_pin_gone(self, slot);
        }
    }

    /// Notes a hit, which is a use of the entry. By the owning thread. False if there is more to do,
    /// which [`note`](Self::note) does: the first time after an install, or beyond the stamps.
    #[inline]
    pub(crate) fn note_at_once(&self, entry: u32, clock: &AtomicU64) -> bool {
        let now = self.own.clock.load(Ordering::Relaxed) + 1;
        if clock.load(Ordering::Relaxed) > now {
            return false;
        }
        let Some(stamp) = self.stamp_of(entry) else { return false };
        self.own.clock.store(now, Ordering::Relaxed);
        stamp.store(now, Ordering::Relaxed);
        true
    }

    /// Notes a hit. By the owning thread. False if the entry is beyond the stamps, which then have to
    /// [`grow`](Self::grow) first.
    pub(crate) fn note(&self, entry: u32, clock: &AtomicU64) -> bool {
        let Some(stamp) = self.stamp_of(entry) else { return false };
        let next = self.own.clock.load(Ordering::Relaxed) + 1;
        let now = clock.load(Ordering::Relaxed).max(next);
        // One writer: no read-modify-write is needed. Before the clock, so that who counts the hits in
        // between finds fewer, and not as many as the time that was skipped.
        let skipped = self.own.skipped.load(Ordering::Relaxed) + (now - next);
        self.own.skipped.store(skipped, Ordering::Relaxed);
        self.own.clock.store(now, Ordering::Release);
        stamp.store(now, Ordering::Relaxed);
        true
    }

    /// Where the owner notes when it last used the entry. By the owning thread.
    #[inline]
    fn stamp_of(&self, entry: u32) -> Option<&AtomicU64> {
        // SAFETY: this is the owning thread, and it is not growing the stamps now.
        let stamps = self.own.stamps.with(|stamps| unsafe { &*stamps });
        stamps.get(entry as usize)
    }

    /// Counts a hit that is no use. By the owning thread.
    pub(crate) fn count_hit(&self) {
        // One writer: no read-modify-write is needed.
        self.own.clock.store(self.own.clock.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Makes stamps for so many entries. By the owning thread, under the ledger's lock.
    pub(crate) fn grow(&self, entries: usize) {
        self.own.stamps.with_mut(|stamps| {
            // SAFETY: this is the owning thread, and the others read under the lock that it holds.
            let stamps = unsafe { &mut *stamps };
            if stamps.len() < entries {
                let old = std::mem::take(stamps).into_vec();
                let more = entries + entries / 4 + FEWEST_STAMPS - old.len();
                *stamps = old.into_iter().chain((0..more).map(|_| AtomicU64::new(0))).collect();
            }
        });
    }

    /// When the owner last used the entry; zero for never. Under the ledger's lock.
    pub(crate) fn stamp(&self, entry: u32) -> u64 {
        // SAFETY: stamps are replaced under the lock that the caller holds.
        let stamps = self.own.stamps.with(|stamps| unsafe { &*stamps });
        stamps.get(entry as usize).map_or(0, |stamp| stamp.load(Ordering::Relaxed))
    }

    pub(crate) fn clock(&self) -> u64 {
        self.own.clock.load(Ordering::Relaxed)
    }

    pub(crate) fn hits(&self) -> u64 {
        // The two are of one moment only where the owner rests; else the hits of that moment are too few.
        let clock = self.own.clock.load(Ordering::Acquire);
        clock.saturating_sub(self.own.skipped.load(Ordering::Relaxed))
    }

    /// Whether any slot pins this entry now.
    #[inline]
    pub(crate) fn pins_somewhere(&self, entry: u32) -> bool {
        // All of them, without a branch for each: the usual answer is no.
        self.line[..SLOTS]
            .iter()
            .fold(false, |found, slot| found | (slot.load(Ordering::SeqCst) == entry + 1))
    }

    /// The slots that pin this entry now.
    pub(crate) fn pinning(&self, entry: u32) -> impl Iterator<Item = usize> + '_ {
        (0..SLOTS).filter(move |&slot| self.pins(slot, entry))
    }

    pub(crate) fn pins(&self, slot: usize, entry: u32) -> bool {
        self.line[slot].load(Ordering::SeqCst) == entry + 1
    }

    /// What it is called in the ledger.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Has the end of this slot's pin told. Under the ledger's lock.
    pub(crate) fn watch(&self, slot: usize) {
        self.line[WATCHED].fetch_or(1 << slot, Ordering::SeqCst);
    }

    /// The opposite.
    pub(crate) fn unwatch(&self, slot: usize) {
        self.line[WATCHED].fetch_and(!(1 << slot), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes which slots it was told of.
    #[derive(Default)]
    struct Heard(std::sync::Mutex<Vec<usize>>);

    impl Watcher for Heard {
        fn watched_pin_gone(self: Arc<Self>, _: &'static Reader, slot: usize) {
            self.0.lock().unwrap().push(slot);
        }

        fn thread_gone(self: Arc<Self>, _: &'static Reader) {}
    }

    fn reader() -> (Arc<Heard>, &'static Reader) {
        let heard = Arc::new(Heard::default());
        (heard.clone(), Reader::take(1, local::as_watcher(&Arc::downgrade(&heard))))
    }

    fn resident() -> State {
        let state = State::vacant();
        state.install(0);
        state
    }

    #[test]
    fn slots_and_what_is_kept_behind_them_are_apart() {
        assert_eq!(WATCHED, SLOTS);
        let mut bits = FENCED;
        for slot in 0..SLOTS {
            assert_eq!(bits & (1 << slot), 0, "slot {slot}");
            bits |= 1 << slot;
        }
        assert_eq!(bits.count_ones() as usize, SLOTS + 1);
    }

    #[test]
    fn pins_are_in_slots_until_all_are_taken_and_the_state_counts_none() {
        let ((_, reader), state) = (reader(), resident());
        let mut pins: Vec<_> = (0..SLOTS).map(|_| reader.pin(7, &state).unwrap()).collect();
        assert!(!state.is_counted());
        assert!(reader.pin(7, &state).is_none());
        assert!(reader.pinning(7).eq(0..SLOTS) && reader.pinning(8).next().is_none());
        assert!(reader.pins_somewhere(7) && !reader.pins_somewhere(6));
        pins.swap_remove(4).clear();
        assert!(!reader.pins(4, 7));
        let again = reader.pin(9, &state).unwrap();
        assert!(reader.pins(4, 9));
        pins.into_iter().chain([again]).for_each(ReaderSlot::clear);
        assert!(!reader.pins_somewhere(7));
        reader.give_back();
    }

    #[test]
    fn what_is_claimed_or_retired_is_pinned_in_no_slot() {
        let (_, reader) = reader();
        for change in [|state: &State| _ = state.claim(), |state: &State| _ = state.retire()] {
            let state = resident();
            change(&state);
            assert!(reader.pin(7, &state).is_none() && !reader.pins_somewhere(7));
        }
        reader.give_back();
    }

    #[test]
    fn the_end_of_a_watched_pin_is_told_and_of_no_other() {
        let ((heard, reader), state) = (reader(), resident());
        let told = || std::mem::take(&mut *heard.0.lock().unwrap());
        let pins: Vec<_> = (0..4).map(|_| reader.pin(7, &state).unwrap()).collect();
        reader.watch(1);
        reader.watch(2);
        reader.unwatch(2);
        pins.into_iter().for_each(ReaderSlot::clear);
        assert_eq!(told(), [1]);
        reader.unwatch(1);
        let pins: Vec<_> = (0..2).map(|_| reader.pin(7, &state).unwrap()).collect();
        pins.into_iter().for_each(ReaderSlot::clear);
        assert_eq!(told(), [0_usize; 0]);
        reader.give_back();
    }

    #[test]
    fn a_hit_is_noted_later_than_all_before_it_and_counted_once() {
        let ((_, reader), clock) = (reader(), AtomicU64::new(0));
        assert!(!reader.note(3, &clock) && reader.hits() == 0);
        reader.grow(4);
        assert!(reader.note_at_once(3, &clock));
        assert_eq!((reader.stamp(3), reader.clock(), reader.hits()), (1, 1, 1));
        // The cache's clock has gone on: an install was later than that.
        clock.store(10, Ordering::Relaxed);
        assert!(!reader.note_at_once(2, &clock) && reader.note(2, &clock));
        assert_eq!((reader.stamp(2), reader.clock(), reader.hits()), (10, 10, 2));
        assert!(reader.note_at_once(3, &clock));
        reader.count_hit();
        assert_eq!((reader.stamp(3), reader.clock(), reader.hits()), (11, 12, 4));
        assert_eq!((reader.stamp(1), reader.stamp(1_000)), (0, 0));
        reader.give_back();
        assert_eq!((reader.clock(), reader.hits(), reader.stamp(3)), (0, 0, 0));
    }

    #[test]
    fn stamps_grow_in_small_steps_and_are_kept() {
        let ((_, reader), clock) = (reader(), AtomicU64::new(0));
        // SAFETY: no other thread knows of this reader.
        let room = || reader.own.stamps.with(|stamps| unsafe { &*stamps }.len());
        for entries in 1..2_000_usize {
            reader.grow(entries);
            assert!((entries..=entries * 5 / 4 + FEWEST_STAMPS).contains(&room()), "{entries}");
            assert!(reader.note(entries as u32 - 1, &clock));
        }
        assert!((0..1_999_u32).all(|entry| reader.stamp(entry) == u64::from(entry) + 1));
        let before = room();
        reader.grow(1);
        assert_eq!(room(), before);
        reader.give_back();
    }

    #[test]
    fn readers_have_addresses_of_their_own_and_are_of_one_cache() {
        let ((_, one), (_, other)) = (reader(), reader());
        assert_ne!(one.address(), other.address());
        assert!(one.is_for(1) && !one.is_for(2));
        one.give_back();
        assert!(!one.is_for(1));
        other.give_back();
    }
}
