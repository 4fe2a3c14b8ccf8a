//! One slot of a reader: where a thread announces a pin, and where it ends.

use std::ptr::NonNull;

use super::barrier::light;
use super::{Line, Reader, WATCHED, WORDS};
use crate::cache::core::state::State;
use crate::sync::{AtomicU32, AtomicU64, Ordering, agree};

/// A slot, by its own address: a reader begins with its line of slots, and its alignment leaves the
/// bits of the slot free.
#[derive(Clone, Copy)]
pub(crate) struct ReaderSlot(NonNull<Reader>);

const SLOT_BITS: usize = align_of::<Reader>() - 1;
const SLOT_SIZE: usize = size_of::<u32>();
const _: () =
    assert!(std::mem::offset_of!(Reader, line) == 0 && WORDS * SLOT_SIZE <= SLOT_BITS + 1);

impl ReaderSlot {
    /// No reader's slot, for a place that is kept with the id of no cache. Nothing is done with it.
    pub(super) const NOWHERE: Self = Self(NonNull::dangling());

    pub(super) fn new(reader: &'static Reader, slot: usize) -> Self {
        Self(NonNull::from(reader).map_addr(|address| address | (slot * SLOT_SIZE)))
    }

    /// The reader whose slot this is.
    #[inline(always)]
    pub(crate) fn reader(self) -> &'static Reader {
        let reader = self.0.as_ptr().map_addr(|address| address & !SLOT_BITS);
        // SAFETY: made by `new` of a `&'static Reader`, whose alignment leaves these bits free.
        unsafe { &*reader }
    }

    #[inline(always)]
    fn number(self) -> usize {
        (self.0.addr().get() & SLOT_BITS) / SLOT_SIZE
    }

    #[inline(always)]
    fn word(self) -> &'static AtomicU32 {
        if size_of::<AtomicU32>() != SLOT_SIZE {
            // A model's atomics are larger.
            let line: &Line = &self.reader().line;
            return &line[self.number() & (WORDS - 1)];
        }
        // SAFETY: made by `new` of a reference to the whole reader, and its address is the word's.
        unsafe { self.0.cast().as_ref() }
    }

    /// Pins an entry that is resident and not claimed, if this slot is free. Otherwise what the
    /// caller has to [take back](take_back): an announcement that does not stand, or none. By the
    /// thread that owns the reader.
    #[inline(always)]
    pub(crate) fn announce(self, entry: u32, state: &State) -> Result<Self, Option<Self>> {
        let word = self.word();
        if word.load(Ordering::Acquire) != 0 {
            return Err(None);
        }
        word.swap(entry + 1, Ordering::SeqCst);
        agree();
        if state.allows_announced_pin() { Ok(self) } else { Err(Some(self)) }
    }

    /// As [`Reader::note_at_once`], by the reader whose slot this is.
    #[inline(always)]
    pub(crate) fn note_at_once(self, entry: u32, clock: &AtomicU64) -> bool {
        self.reader().note_at_once(entry, clock)
    }

    /// Ends the pin. By any thread.
    #[inline]
    pub(crate) fn clear(self) {
        light(self.word());
        let reader = self.reader();
        // Whether this very slot is watched is looked at out of the way.
        if reader.line[WATCHED].load(Ordering::SeqCst) != 0 {
            reader.end_watched(self.number());
        }
    }
}

/// Ends an announcement that came to nothing, if there is one.
#[cold]
#[inline(never)]
pub(crate) fn take_back(announcement: Option<ReaderSlot>) {
    announcement.into_iter().for_each(ReaderSlot::clear);
}
