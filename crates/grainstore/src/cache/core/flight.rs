//! One build that several callers share: who leads it, who waits, and what came of it.
//!
//! The ledger's lock orders a flight with the entry it builds for: joining, dooming, abdicating and
//! ending take that lock first, and then the flight's own, which alone is enough to wait and to read
//! the outcome. A flight that nobody but its leader has seen ends without its own lock. Wakers are
//! handed to the caller, to be woken under no lock; they are cloned and dropped under none, either.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::waits::Node;
use super::wakers::Spare;
use crate::Error;
use crate::sync::{Condvar, Instant, Mutex};

/// A build in flight.
#[derive(Default)]
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
    /// The leader is gone: whoever comes or wakes first leads.
    leaderless: bool,
    wakers: Vec<Waker>,
}

/// What came of a build.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The entry has a value, with one pin for each waiter.
    Ready,
    Failed(Error),
}

/// What a waiter woke up to. It is no waiter any more.
#[derive(Debug)]
pub(crate) enum Woken {
    Ended(Outcome),
    /// It leads the flight now, with its own build.
    Leads,
}

/// What becomes of a flight that lost its leader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Abdicated {
    /// Somebody waits, and will lead.
    Inherited,
    /// Nobody is left: the caller ends the flight.
    Deserted,
}

impl Flight {
    pub(crate) fn new(node: Node) -> Self {
        Self { node, ..Self::default() }
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

    /// Takes out a waiter that did not wake up. Under the ledger's lock. The outcome, whose pin the
    /// caller then has to give up; or whether the flight is deserted now.
    pub(crate) fn leave(&self) -> (Option<Outcome>, Abdicated) {
        let mut progress = self.progress.lock();
        progress.waiters -= 1;
        let deserted = progress.outcome.is_none() && progress.leaderless && progress.waiters == 0;
        progress.leaderless &= !deserted;
        let rest = if deserted { Abdicated::Deserted } else { Abdicated::Inherited };
        (progress.outcome.clone(), rest)
    }

    /// The leader goes without an outcome. Under the ledger's lock.
    pub(crate) fn abdicate(&self) -> (Abdicated, Vec<Waker>) {
        let mut progress = self.progress.lock();
        if progress.doom.is_some() || progress.waiters == 0 {
            return (Abdicated::Deserted, Vec::new());
        }
        progress.leaderless = true;
        (Abdicated::Inherited, self.wake(progress))
    }

    /// Tells the waiters at once that there will be no value, and the leader at its end. Under the
    /// ledger's lock. Nothing if it was doomed before. Deserted if it has no leader who would end
    /// it.
    pub(crate) fn doom(&self, reason: &Error) -> Option<(Abdicated, Vec<Waker>)> {
        let mut progress = self.progress.lock();
        if progress.doom.is_some() {
            return None;
        }
        progress.doom = Some(reason.clone());
        progress.outcome = Some(Outcome::Failed(reason.clone()));
        let leaderless = std::mem::take(&mut progress.leaderless);
        let rest = if leaderless { Abdicated::Deserted } else { Abdicated::Inherited };
        Some((rest, self.wake(progress)))
    }

    pub(crate) fn doomed(&self) -> Option<Error> {
        self.progress.lock().doom.clone()
    }

    /// The build has a value, unless it is doomed: `install` gets the number of pins that the waiters
    /// are owed, and then they are told. Under the ledger's lock.
    pub(crate) fn succeed(&self, install: impl FnOnce(u32)) -> Result<Vec<Waker>, Error> {
        let mut progress = self.progress.lock();
        if let Some(reason) = &progress.doom {
            return Err(reason.clone());
        }
        install(progress.waiters);
        progress.outcome = Some(Outcome::Ready);
        Ok(self.wake(progress))
    }

    /// Tells all waiters the outcome. Under the ledger's lock; nobody joins afterwards.
    pub(crate) fn end(&self, outcome: Outcome) -> Vec<Waker> {
        let mut progress = self.progress.lock();
        progress.outcome.get_or_insert(outcome);
        self.wake(progress)
    }

    fn wake(&self, mut progress: crate::sync::MutexGuard<'_, Progress>) -> Vec<Waker> {
        let wakers = std::mem::take(&mut progress.wakers);
        let sleepers = progress.waiters > 0;
        drop(progress);
        if sleepers {
            self.changed.notify_all();
        }
        wakers
    }

    /// Blocks until there is an outcome, or this waiter is to lead; or, if there is a limit, nothing
    /// after that long.
    pub(crate) fn wait(&self, at_most: Option<Duration>) -> Option<Woken> {
        let mut progress = self.progress.lock();
        let start = at_most.map(|limit| (Instant::now(), limit));
        loop {
            if let Some(woken) = progress.wake_up() {
                return Some(woken);
            }
            progress = match start {
                None => self.changed.wait(progress),
                Some((start, limit)) => {
                    let left = limit.checked_sub(start.elapsed())?;
                    self.changed.wait_timeout(progress, left)
                }
            };
        }
    }

    /// The same for a task.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Woken> {
        let mut spare = Spare::of(context.waker());
        let mut progress = self.progress.lock();
        if let Some(woken) = progress.wake_up() {
            return Poll::Ready(woken);
        }
        spare.join(&mut progress.wakers);
        Poll::Pending
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
