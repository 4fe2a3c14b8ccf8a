//! Where a thread waits for others, within a bound: a battery that waits for ever tells nobody why.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::trouble::{Check, ensure};

/// So long that nothing comes to it unless it hangs.
pub(crate) const BOUND: Duration = Duration::from_secs(120);

/// Calls stop here until it is opened.
#[derive(Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    /// Waits until it is open; but not for ever, so that a check that has failed comes to its end.
    pub(crate) fn pass(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(open, BOUND, |open| !*open));
    }

    pub(crate) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

/// Counts what several threads do, and says when they are over.
#[derive(Default)]
pub(crate) struct Meter {
    state: Mutex<Count>,
    changed: Condvar,
}

#[derive(Default)]
struct Count {
    done: usize,
    over: bool,
}

impl Meter {
    /// One more is done.
    pub(crate) fn tick(&self) {
        self.lock().done += 1;
        self.changed.notify_all();
    }

    /// There will be no more.
    pub(crate) fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Waits for so many more from now on. False when it is over before that.
    pub(crate) fn more(&self, count: usize) -> Check<bool> {
        let state = self.lock();
        let goal = state.done + count;
        let (state, waited) = self
            .changed
            .wait_timeout_while(state, BOUND, |state| !state.over && state.done < goal)
            .unwrap_or_else(PoisonError::into_inner);
        ensure!(!waited.timed_out(), "{BOUND:?} went by without {count} launches");
        Ok(!state.over)
    }

    fn lock(&self) -> MutexGuard<'_, Count> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
