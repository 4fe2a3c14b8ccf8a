//! The end of a backend: everything is let go within a bound, and then nothing touches the driver.

use std::time::{Duration, Instant};

use super::BackendCache;
use super::teardown::{First, Held, deadline, left};
use crate::{Backend, RuntimeError};

/// What a shutdown has to tell at its end, over one backend or several.
#[derive(Default)]
pub(crate) struct Ending {
    first: First,
    running: Vec<String>,
    pinned: Vec<String>,
}

impl Ending {
    pub(crate) fn note(&mut self, result: Result<(), RuntimeError>) {
        self.first.note(result);
    }

    pub(crate) fn into_result(self) -> Result<(), RuntimeError> {
        if self.running.is_empty() && self.pinned.is_empty() {
            return self.first.into_result();
        }
        Err(RuntimeError::ShutdownIncomplete { running: self.running, pinned: self.pinned })
    }
}

impl<B: Backend> BackendCache<B> {
    /// Ends the use of this backend: destroys its devices, waits for what is still held, and then
    /// touches the driver no more, so that the process may exit in any order. What did not end
    /// within the bound is abandoned. Called again, it says what is still running, if anything.
    ///
    /// # Errors
    /// [`RuntimeError::ShutdownIncomplete`] with the builds that were still running and the kernels
    /// that were still pinned. Otherwise the first failure of a listener, a release or the driver.
    pub fn shutdown(&self) -> Result<(), RuntimeError> {
        self.shutdown_within(self.inner.settings.drain_bound)
    }

    /// The same with a bound of its own.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    pub fn shutdown_within(&self, bound: Duration) -> Result<(), RuntimeError> {
        let deadline = deadline(bound);
        let mut ending = Ending::default();
        let first = self.begin_shutdown()?;
        if first {
            ending.note(self.hooks().notify_clear_all().map_err(RuntimeError::from));
        }
        self.end_shutdown(first, deadline, &mut ending);
        ending.into_result()
    }

    /// Refuses all kernels from now on. Says whether this is the first call, which tells the layers
    /// above and does the work; others wait for it.
    pub(crate) fn begin_shutdown(&self) -> Result<bool, RuntimeError> {
        let door = &self.inner.door;
        door.home.check()?;
        let first = door.activity.begin_to_close();
        self.inner.table.close();
        Ok(first)
    }

    /// Does the rest. By then the layers above have let go.
    pub(crate) fn end_shutdown(&self, first: bool, deadline: Instant, ending: &mut Ending) {
        let activity = &self.inner.door.activity;
        if first {
            self.let_go(deadline, ending);
            activity.close();
        } else if !activity.wait_until_closed(deadline) {
            ending.running.push(format!("the shutdown of {} on another thread", self.name()));
        }
        // Nobody gets in any more; who got in before that is waited for, or named.
        let running = activity.wait(deadline);
        if !running.is_empty() {
            self.inner.door.give_up();
        }
        ending.running.extend(running);
    }

    fn let_go(&self, deadline: Instant, ending: &mut Ending) {
        // First without waiting: that ends what nobody holds, and tells the builds that wait for
        // each other that they are doomed. Then there is something worth waiting for.
        for device in self.inner.table.close() {
            let ended = self.end_if_free(&device);
            if !matches!(
                ended,
                Err(RuntimeError::DeviceHeld { .. } | RuntimeError::TeardownRunning { .. })
            ) {
                ending.note(ended);
            }
        }
        let running = self.inner.door.activity.wait(deadline);
        for device in self.inner.table.close() {
            match self.tear_down(&device, left(deadline), Held::Report) {
                Err(RuntimeError::DeviceHeld { device: id, kernels }) => {
                    let held = kernels.into_iter().map(|kernel| format!("{kernel} on {id}"));
                    ending.pinned.extend(held.filter(|name| !running.contains(name)));
                    self.inner.door.give_up();
                    self.give_up(&device);
                }
                Err(RuntimeError::TeardownRunning { device }) => {
                    self.inner.door.give_up();
                    ending.running.push(format!("the teardown of {device}"));
                }
                ended => ending.note(ended),
            }
        }
    }
}
