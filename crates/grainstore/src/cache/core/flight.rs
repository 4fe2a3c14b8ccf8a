//! One build that several callers share: who leads it, who waits, and what came of it.
//!
//! The ledger's lock orders a flight with the entry it builds for: joining, dooming and ending take
//! that lock first, and then the flight's own, which alone is enough to wait and to read the outcome.

use std::task::Waker;

use super::waits::Node;
use crate::Error;
use crate::sync::{Condvar, Mutex};

/// A build in flight.
pub(crate) struct Flight {
    /// This build in the graph of waits.
    pub(crate) node: Node,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    outcome: Option<Outcome>,
    /// Why the leader's value must not be kept, if it must not.
    doom: Option<Error>,
    /// How many have joined, and are each owed a pin of the outcome.
    waiters: u32,
    /// The leader is gone: whoever waits may lead.
    leaderless: bool,
    wakers: Vec<Waker>,
}

/// What came of a build.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The entry of that index, with one pin for each waiter.
    Ready(u32),
    Failed(Error),
}

/// What a waiter woke up to.
#[derive(Debug)]
pub(crate) enum Woken {
    Ended(Outcome),
    /// The waiter leads the flight now, with its own build.
    Leads,
}

impl Flight {
    pub(crate) fn new() -> Self {
        let progress = Mutex::new(Progress::default());
        Self { node: Node::new(), progress, changed: Condvar::new() }
    }

    /// Adds a waiter, or makes the caller the leader of a flight that lost its own: then false.
    /// Under the ledger's lock.
    pub(crate) fn join(&self) -> bool {
        let mut progress = self.progress.lock();
        if progress.leaderless {
            progress.leaderless = false;
            return false;
        }
        progress.waiters += 1;
        true
    }

    /// Takes a waiter out again. Under the ledger's lock. The outcome that its pin came with, if
    /// there is one: the caller has to give the pin up.
    pub(crate) fn leave(&self) -> Option<Outcome> {
        let mut progress = self.progress.lock();
        progress.waiters -= 1;
        progress.outcome.clone()
    }

    /// Tells the waiters at once that there will be no value, and the leader at its end. Under the
    /// ledger's lock. True if it was not doomed before.
    pub(crate) fn doom(&self, reason: &Error) -> bool {
        let mut progress = self.progress.lock();
        if progress.doom.is_some() {
            return false;
        }
        progress.doom = Some(reason.clone());
        self.publish(progress, Outcome::Failed(reason.clone()));
        true
    }

    pub(crate) fn doomed(&self) -> Option<Error> {
        self.progress.lock().doom.clone()
    }

    pub(crate) fn is_leaderless(&self) -> bool {
        self.progress.lock().leaderless
    }

    /// How many pins the outcome owes to waiters. Under the ledger's lock, just before
    /// [`end`](Self::end).
    pub(crate) fn waiters(&self) -> u32 {
        self.progress.lock().waiters
    }

    /// Tells all waiters the outcome. Under the ledger's lock; nobody joins afterwards.
    pub(crate) fn end(&self, outcome: Outcome) {
        self.publish(self.progress.lock(), outcome);
    }

    fn publish(&self, mut progress: crate::sync::MutexGuard<'_, Progress>, outcome: Outcome) {
        if progress.outcome.is_none() {
            progress.outcome = Some(outcome);
        }
        let wakers = std::mem::take(&mut progress.wakers);
        let sleepers = progress.waiters > 0;
        drop(progress);
        if sleepers {
            self.changed.notify_all();
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Blocks until there is an outcome, or the flight is without a leader and this waiter leads it.
    pub(crate) fn wait(&self) -> Woken {
        let mut progress = self.progress.lock();
        loop {
            if let Some(woken) = progress.wake_up() {
                return woken;
            }
            progress = self.changed.wait(progress);
        }
    }
}

impl Progress {
    fn wake_up(&mut self) -> Option<Woken> {
        if let Some(outcome) = &self.outcome {
            return Some(Woken::Ended(outcome.clone()));
        }
        if self.leaderless {
            self.leaderless = false;
            self.waiters -= 1;
            return Some(Woken::Leads);
        }
        None
    }
}
