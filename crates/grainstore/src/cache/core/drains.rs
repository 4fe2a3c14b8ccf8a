//! What a teardown still waits for: the values it retired and the builds it doomed.
//!
//! Lock order: the ledger's lock first, then a drain's. Nobody takes the ledger's lock under a
//! drain's.

use std::task::Waker;
use std::time::Duration;

use super::wakers::{Spare, discard};
use crate::ReleaseError;
use crate::hashing::HashSet;
use crate::sync::{Arc, AtomicU32, Condvar, Mutex, Ordering};

/// The drains that wait for one entry.
pub(crate) type Coverage = Vec<Arc<DrainState>>;

/// The shared part of a `Drain`.
#[derive(Default)]
pub(crate) struct DrainState {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    pending: HashSet<u32>,
    released: usize,
    failures: Vec<Arc<Failure>>,
    /// The `Drain` was dropped: it shows nothing any more.
    dropped: bool,
    /// Counts what a sleeper may want to look at.
    changes: u64,
    wakers: Vec<Waker>,
}

/// A release error, on its way to whoever can still show it.
pub(crate) struct Failure {
    pub(crate) error: ReleaseError,
    /// The drains that may yet show it; [`SHOWN`] once one has.
    holders: AtomicU32,
}

const SHOWN: u32 = 1 << 31;

/// How an entry left a drain's care.
#[derive(Clone)]
pub(crate) enum Ending {
    Released(Result<(), ReleaseError>),
    /// Abandoned, or a build that came to nothing.
    WithoutRelease,
}

impl DrainState {
    /// The entry is now waited for. Under the ledger's lock.
    pub(crate) fn cover(&self, index: u32) {
        self.progress.lock().pending.insert(index);
    }

    fn end(&self, index: u32, ending: &Ending, failure: Option<&Arc<Failure>>) -> Vec<Waker> {
        let mut progress = self.progress.lock();
        progress.pending.remove(&index);
        if let Ending::Released(_) = ending {
            progress.released += 1;
        }
        if let Some(failure) = failure.filter(|_| !progress.dropped) {
            failure.holders.fetch_add(1, Ordering::AcqRel);
            progress.failures.push(failure.clone());
        }
        self.wake(progress)
    }

    fn wake(&self, mut progress: crate::sync::MutexGuard<'_, Progress>) -> Vec<Waker> {
        progress.changes += 1;
        let wakers = std::mem::take(&mut progress.wakers);
        drop(progress);
        self.changed.notify_all();
        wakers
    }

    /// Has whoever waits look again.
    pub(crate) fn nudge(&self) -> Vec<Waker> {
        self.wake(self.progress.lock())
    }

    pub(crate) fn released(&self) -> usize {
        self.progress.lock().released
    }

    pub(crate) fn pending(&self) -> Vec<u32> {
        self.progress.lock().pending.iter().copied().collect()
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.progress.lock().pending.len()
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.progress.lock().dropped
    }

    pub(crate) fn changes(&self) -> u64 {
        self.progress.lock().changes
    }

    /// Sleeps until something changed since `seen`, or that long.
    pub(crate) fn sleep(&self, seen: u64, at_most: Option<Duration>) {
        let mut progress = self.progress.lock();
        match at_most {
            Some(timeout) if progress.changes == seen => {
                drop(self.changed.wait_timeout(progress, timeout));
            }
            Some(_) => {}
            None => {
                while progress.changes == seen {
                    progress = self.changed.wait(progress);
                }
            }
        }
    }

    /// Whether something changed since `seen`; if not, the next change wakes this waker.
    pub(crate) fn changed_since(&self, seen: u64, waker: &Waker) -> bool {
        let mut spare = Spare::of(waker);
        let mut progress = self.progress.lock();
        if progress.changes == seen {
            spare.join(&mut progress.wakers);
        }
        progress.changes != seen
    }

    /// All errors so far. They count as shown.
    pub(crate) fn show_errors(&self) -> Vec<ReleaseError> {
        let progress = self.progress.lock();
        progress.failures.iter().map(|failure| failure.show()).collect()
    }

    /// The first error, which then counts as shown.
    pub(crate) fn show_first_error(&self) -> Option<ReleaseError> {
        self.progress.lock().failures.first().map(|failure| failure.show())
    }

    /// The `Drain` is dropped: the errors that now nobody can show any more.
    pub(crate) fn drop_handle(&self) -> Vec<ReleaseError> {
        let mut progress = self.progress.lock();
        progress.dropped = true;
        let failures = std::mem::take(&mut progress.failures);
        // Nobody waits any more. What has been left here would be dropped under the ledger's lock.
        let wakers = std::mem::take(&mut progress.wakers);
        drop(progress);
        wakers.into_iter().for_each(discard);
        failures.iter().filter_map(|failure| failure.give_up()).collect()
    }
}

impl Failure {
    fn show(&self) -> ReleaseError {
        self.holders.fetch_or(SHOWN, Ordering::AcqRel);
        self.error.clone()
    }

    /// One holder less. The error, if nobody has shown it and nobody is left to.
    fn give_up(&self) -> Option<ReleaseError> {
        let before = self.holders.fetch_sub(1, Ordering::AcqRel);
        (before == 1).then(|| self.error.clone())
    }
}

/// Tells every drain that covers the entry how it ended. Under the ledger's lock. The error, if no
/// drain is there to show it; and who is to be woken.
pub(crate) fn tell(
    coverage: &Coverage,
    index: u32,
    ending: &Ending,
) -> (Option<ReleaseError>, Vec<Waker>) {
    let error = match ending {
        Ending::Released(Err(error)) => Some(error),
        _ => None,
    };
    if coverage.is_empty() {
        return (error.cloned(), Vec::new());
    }
    // One for this call, so that no drain dropped meanwhile is taken for the last.
    let failure =
        error.map(|error| Arc::new(Failure { error: error.clone(), holders: AtomicU32::new(1) }));
    let wakers =
        coverage.iter().flat_map(|drain| drain.end(index, ending, failure.as_ref())).collect();
    (failure.and_then(|failure| failure.give_up()), wakers)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn what_changed_before_the_sleep_is_not_slept_through() {
        let drain = DrainState::default();
        let seen = drain.changes();
        drain.nudge();
        drain.sleep(seen, None);
        drain.sleep(seen, Some(Duration::from_secs(3600)));
        assert!(drain.changed_since(seen, Waker::noop()));
    }

    #[test]
    fn a_sleep_ends_with_the_next_change_and_not_before() {
        let drain = Arc::new(DrainState::default());
        let seen = drain.changes();
        let (says, hears) = channel();
        let sleeper = thread::spawn({
            let drain = drain.clone();
            move || {
                says.send(()).unwrap();
                drain.sleep(seen, None);
                drain.changes()
            }
        });
        hears.recv().unwrap();
        // Time to fall asleep, or to come back although nothing changed.
        for _ in 0..100 {
            thread::yield_now();
        }
        drain.nudge();
        assert_ne!(sleeper.join().unwrap(), seen);
    }
}
