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
    left: Condvar,
}

#[derive(Default)]
struct State {
    gate: Gate,
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

    /// Closes the gate as far as this; it never opens again. Says how far it was closed before.
    pub(crate) fn close(&self, gate: Gate) -> Gate {
        let mut state = self.lock();
        let before = state.gate;
        state.gate = before.max(gate);
        before
    }

    /// Waits until nobody else is inside; at the deadline, gives the names of those who still are.
    /// The caller's own calls are named but not waited for: they end after this one.
    pub(crate) fn wait(&self, deadline: Instant) -> Vec<String> {
        let me = thread::current().id();
        let mut state = self.lock();
        while state.inside.values().any(|call| call.thread != me) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.left.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.inside.values().map(|call| call.what.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.activity.lock().inside.remove(&self.ticket);
        self.activity.left.notify_all();
    }
}
