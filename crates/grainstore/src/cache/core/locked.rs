//! The ledger's lock, and what is to happen right after it is let go.

use std::ops::{Deref, DerefMut};
use std::task::Waker;

use super::ledger::Ledger;
use crate::contain::contain;
use crate::sync::MutexGuard;

/// The ledger, locked. Tasks that were found to be worth waking are woken when the lock is gone.
pub(crate) struct Locked<'a> {
    // In the order of their drops.
    guard: MutexGuard<'a, Ledger>,
    later: Later,
}

struct Later(Vec<Waker>);

impl<'a> Locked<'a> {
    pub(crate) fn new(guard: MutexGuard<'a, Ledger>) -> Self {
        Self { guard, later: Later(Vec::new()) }
    }

    /// Has these woken when the lock is gone: a waker is the user's code.
    #[inline]
    pub(crate) fn wake_later(&mut self, wakers: Vec<Waker>) {
        // Nearly always there are none.
        if !wakers.is_empty() {
            self.later.add(wakers);
        }
    }
}

impl Locked<'_> {
    /// Has those look again who wait for this entry.
    pub(crate) fn nudge_drains(&mut self, index: u32) {
        let drains = self.drains.get(&index).into_iter().flatten();
        let wakers = drains.flat_map(|drain| drain.nudge()).collect();
        self.wake_later(wakers);
    }

    /// Has everybody look again who waits for anything.
    pub(crate) fn nudge_all_drains(&mut self) {
        let wakers = self.drains.values().flatten().flat_map(|drain| drain.nudge()).collect();
        self.wake_later(wakers);
    }
}

impl Deref for Locked<'_> {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.guard
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Ledger {
        &mut self.guard
    }
}

impl Later {
    #[cold]
    fn add(&mut self, wakers: Vec<Waker>) {
        self.0.extend(wakers);
    }

    #[cold]
    fn wake(&mut self) {
        for waker in std::mem::take(&mut self.0) {
            let _ = contain(|| waker.wake());
        }
    }
}

impl Drop for Later {
    #[inline]
    fn drop(&mut self) {
        if !self.0.is_empty() {
            self.wake();
        }
    }
}
