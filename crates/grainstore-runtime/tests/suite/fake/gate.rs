//! A place where calls wait until the test lets them go on.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// So long that no test comes to it unless it has failed.
const FOREVER: Duration = Duration::from_secs(60);

/// Clones are the same gate.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    arrived: Vec<String>,
    /// The names of the threads that they came on.
    threads: Vec<String>,
    open: bool,
}

impl Gate {
    pub fn new() -> Self {
        Self(Arc::new(Inner { state: Mutex::default(), changed: Condvar::new() }))
    }

    /// Called where the wait is. A test that fails before it opens the gate does not hang.
    pub fn pass(&self, who: &str) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.arrived.push(who.to_owned());
        state.threads.push(thread::current().name().unwrap_or_default().to_owned());
        self.0.changed.notify_all();
        let (_state, waited) = self
            .0
            .changed
            .wait_timeout_while(state, FOREVER, |state| !state.open)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "nobody opened the gate for {who}");
    }

    /// Waits until so many calls have arrived, and names them.
    pub fn arrived(&self, count: usize) -> Vec<String> {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, waited) = self
            .0
            .changed
            .wait_timeout_while(state, FOREVER, |state| state.arrived.len() < count)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "{} instead of {count} arrived", state.arrived.len());
        state.arrived.clone()
    }

    /// How many calls have arrived so far.
    pub fn waiting(&self) -> usize {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).arrived.len()
    }

    /// The names of the threads that they came on.
    pub fn threads(&self) -> Vec<String> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).threads.clone()
    }

    /// Lets everybody go on, now and later.
    pub fn open(&self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).open = true;
        self.0.changed.notify_all();
    }
}
