//! Who is inside a driver just now, by name, and the gate that a shutdown closes.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

/// Every call into a backend passes here on its way in and on its way out.
///
/// Invariant: once [`close`](Activity::close) has returned, nobody gets in; whoever is inside then
/// is named by [`wait`](Activity::wait).
#[derive(Default)]
pub(crate) struct Activity {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    gate: Gate,
    /// The thread that shuts down, once one does.
    closer: Option<ThreadId>,
    next: u64,
    inside: BTreeMap<u64, Call>,
}

struct Call {
    what: String,
    thread: ThreadId,
}

/// What is still let in.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gate {
    /// Everything.
    #[default]
    Open,
    /// Releases and the destruction of devices: a shutdown is on its way.
    Leaving,
    /// Nothing.
    Closed,
}

/// A call that is inside. Leaves when dropped, also when the call unwinds.
pub(crate) struct Inside {
    activity: Arc<Activity>,
    ticket: u64,
}

impl Activity {
    pub(crate) fn gate(&self) -> Gate {
        self.lock().gate
    }

    /// Lets this call in, if the gate still lets in what may go on until `latest`.
    pub(crate) fn enter(
        self: &Arc<Self>,
        latest: Gate,
        what: impl FnOnce() -> String,
    ) -> Option<Inside> {
        let mut state = self.lock();
        if state.gate > latest {
            return None;
        }
        let ticket = state.next;
        state.next += 1;
        state.inside.insert(ticket, Call { what: what(), thread: thread::current().id() });
        Some(Inside { activity: Arc::clone(self), ticket })
    }

    /// Begins to close. True for the first who does, who has to bring it to its end.
    pub(crate) fn begin_to_close(&self) -> bool {
        let mut state = self.lock();
        let first = state.gate == Gate::Open;
        if first {
            state.gate = Gate::Leaving;
            state.closer = Some(thread::current().id());
        }
        first
    }

    /// From here on nobody gets in.
    pub(crate) fn close(&self) {
        self.lock().gate = Gate::Closed;
        self.changed.notify_all();
    }

    /// Waits until the first who began to close has closed, and says whether it has. From inside its
    /// own call there is nothing to wait for.
    pub(crate) fn wait_until_closed(&self, deadline: Instant) -> bool {
        let me = Some(thread::current().id());
        let mut state = self.lock();
        while state.gate != Gate::Closed && state.closer != me {
            let Some(next) = self.sleep(state, deadline) else { return false };
            state = next;
        }
        true
    }

    /// Waits until nobody else is inside; at the deadline, gives the names of those who still are.
    /// The caller's own calls are named but not waited for: they end after this one.
    pub(crate) fn wait(&self, deadline: Instant) -> Vec<String> {
        let me = thread::current().id();
        let mut state = self.lock();
        while state.inside.values().any(|call| call.thread != me) {
            match self.sleep(state, deadline) {
                Some(next) => state = next,
                None => {
                    state = self.lock();
                    break;
                }
            }
        }
        state.inside.values().map(|call| call.what.clone()).collect()
    }

    /// Sleeps until something changes; `None` when the deadline is over.
    fn sleep<'a>(
        &self,
        state: MutexGuard<'a, State>,
        deadline: Instant,
    ) -> Option<MutexGuard<'a, State>> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        Some(self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.activity.lock().inside.remove(&self.ticket);
        self.activity.changed.notify_all();
    }
}
