//! Wakers are their executor's code: to clone one or to drop one is to call it. So neither is done
//! under a lock, and no panic of it goes through our own code.

use std::task::Waker;

use crate::contain::contain;

/// A clone of a waker, made before a lock is taken, for a list that lies under it. Where the list does
/// not take it, it is dropped at the end of its scope: declared before the lock, after that is free.
pub(crate) struct Spare<'a> {
    original: &'a Waker,
    clone: Option<Waker>,
}

impl<'a> Spare<'a> {
    pub(crate) fn of(original: &'a Waker) -> Self {
        Self { original, clone: Some(original.clone()) }
    }

    /// Puts it into this list, unless that has one for the same task.
    pub(crate) fn join(&mut self, list: &mut Vec<Waker>) {
        if !list.iter().any(|known| known.will_wake(self.original)) {
            list.extend(self.clone.take());
        }
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        self.clone.take().into_iter().for_each(discard);
    }
}

/// Drops a waker that nobody needs.
pub(crate) fn discard(waker: Waker) {
    let _ = contain(|| drop(waker));
}
