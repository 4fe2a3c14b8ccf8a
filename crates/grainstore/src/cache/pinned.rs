//! A pinned value: while it lives, the value is neither evicted nor released.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;

use super::core::entry::Grain;
use super::core::pin_again;
use super::core::readers::slot::ReaderSlot;
use super::core::state::Unpin;

/// A value of a cache, kept from release as long as this or any clone of it lives.
///
/// It derefs to the value. Cloning and dropping it are a few nanoseconds and take no lock; the drop
/// of the last pin of a value that has left its cache releases the value, on the thread of the drop.
/// It keeps nothing else alive: the cache may be dropped while pins are out.
pub struct Pinned<V> {
    grain: NonNull<Grain<V>>,
    /// Where the pin is; none: the state word counts it.
    slot: Option<ReaderSlot>,
}

// SAFETY: a pin is a shared reference to a `V`, whose count is atomic, and whose last drop may
// release the `V` on another thread: `V` must be both `Send` and `Sync`, as for an `Arc`.
unsafe impl<V: Send + Sync> Send for Pinned<V> {}
// SAFETY: as above.
unsafe impl<V: Send + Sync> Sync for Pinned<V> {}

impl<V> Pinned<V> {
    /// Makes the handle of a pin that the caller has taken on the grain, and hands over: in that
    /// slot, or counted.
    #[inline]
    pub(crate) fn new(grain: &Grain<V>, slot: Option<ReaderSlot>) -> Self {
        Self { grain: NonNull::from(grain), slot }
    }

    /// Takes the handle apart. The caller gives up the pin.
    #[inline]
    pub(crate) fn into_slot(self) -> Option<ReaderSlot> {
        let slot = self.slot;
        std::mem::forget(self);
        slot
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.slot.is_none()
    }

    #[inline]
    pub(crate) fn grain(&self) -> &Grain<V> {
        // SAFETY: the arena that holds the grain lives as long as it has a live value, and this pin
        // keeps the grain's value alive.
        unsafe { self.grain.as_ref() }
    }

    /// Whether both pin the same value: the same build, not only an equal key.
    #[must_use]
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.grain == other.grain
    }
}

impl<V> Deref for Pinned<V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        // SAFETY: this is a pin on the grain, which therefore has a value.
        unsafe { self.grain().value() }
    }
}

impl<V> AsRef<V> for Pinned<V> {
    fn as_ref(&self) -> &V {
        self
    }
}

impl<V> Clone for Pinned<V> {
    fn clone(&self) -> Self {
        pin_again(self.grain());
        Self { grain: self.grain, slot: None }
    }
}

impl<V> Drop for Pinned<V> {
    #[inline]
    fn drop(&mut self) {
        match self.slot {
            Some(slot) => slot.clear(),
            None if self.grain().state.unpin() == Unpin::Held => last_pin_dropped(self.grain),
            None => {}
        }
    }
}

/// The caller holds the entry, whose last pin is gone. As long as it is held its value is live, and
/// so is its cache's core; afterwards the grain may be gone.
#[cold]
fn last_pin_dropped<V>(grain: NonNull<Grain<V>>) {
    let (index, owner) = {
        // SAFETY: the entry is held, so that the arena it lies in is alive.
        let grain = unsafe { grain.as_ref() };
        (grain.index, grain.owner().upgrade())
    };
    if let Some(owner) = owner {
        owner.decide(index);
    }
}

impl<V: fmt::Debug> fmt::Debug for Pinned<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pinned").field(&**self).finish()
    }
}

impl<V: fmt::Display> fmt::Display for Pinned<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}
