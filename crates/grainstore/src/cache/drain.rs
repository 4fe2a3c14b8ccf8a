//! What a teardown hands back: how much is released, and a way to wait for the rest.

use std::fmt;
use std::task::Waker;
use std::time::Duration;

use super::core::drains::DrainState;
use super::core::waiting::Pause;
use super::core::{Core, Key, waits};
use crate::ReleaseError;
use crate::sync::{Arc, Instant};
use crate::timer::Until;

/// The part of a core that a drain needs, with the value's type left out.
pub(crate) trait Drained<K>: Send + Sync {
    fn cache_id(&self) -> u64;
    fn settle_pending(&self, drain: &DrainState) -> bool;
    fn pending_keys(&self, drain: &DrainState) -> Vec<K>;
    fn abandon(&self, drain: &DrainState) -> usize;
    fn sink(&self, error: &ReleaseError);
}

impl<K: Key, V: Send + Sync + 'static> Drained<K> for Core<K, V> {
    fn cache_id(&self) -> u64 {
        self.id
    }

    fn settle_pending(&self, drain: &DrainState) -> bool {
        Self::settle_pending(self, drain)
    }

    fn pending_keys(&self, drain: &DrainState) -> Vec<K> {
        Self::pending_keys(self, drain)
    }

    fn abandon(&self, drain: &DrainState) -> usize {
        Self::abandon(self, drain)
    }

    fn sink(&self, error: &ReleaseError) {
        Self::sink(self, error);
    }
}

/// The values that a `remove`, an `evict_device` or a `clear` retired, and the builds it doomed.
///
/// What could be released at once has been, before the call that made this returned. The rest is
/// released as its pins go and it becomes idle, whether or not anybody waits here. Dropping a drain
/// waits for nothing; release errors that it has not shown then go to
/// [`on_release_error`](crate::Builder::on_release_error). A drain does not keep its cache open.
#[must_use = "dropping a drain waits for nothing: call `wait` to know that all is released"]
pub struct Drain<K> {
    state: Arc<DrainState>,
    core: Arc<dyn Drained<K>>,
}

impl<K> Drain<K> {
    pub(crate) fn new(state: Arc<DrainState>, core: Arc<dyn Drained<K>>) -> Self {
        Self { state, core }
    }

    /// How many values have been released so far.
    #[must_use]
    pub fn released(&self) -> usize {
        self.state.released()
    }

    /// How many values and doomed builds are still waited for.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.state.pending_count()
    }

    /// The release errors so far. Each drain that covers a value shows its error; one that was
    /// shown does not go to `on_release_error` any more.
    #[must_use]
    pub fn errors(&self) -> Vec<ReleaseError> {
        self.state.show_errors()
    }

    /// The keys of what is still waited for.
    #[must_use]
    pub fn pending_keys(&self) -> Vec<K> {
        self.core.pending_keys(&self.state)
    }

    /// Blocks until every value and every doomed build of the call is released or ended.
    ///
    /// Values that nobody pins and `idle` calls busy are asked about again at growing distances.
    /// Releases run on this thread where they can.
    ///
    /// # Errors
    /// The first release error. [`ReleaseError::WouldDeadlock`] when called from inside a build, a
    /// release or an `idle` of the same cache and something is still pending after one pass.
    pub fn wait(self) -> Result<(), ReleaseError> {
        if self.wait_until(None) == Waited::WouldDeadlock {
            return Err(ReleaseError::WouldDeadlock);
        }
        self.state.show_first_error().map_or(Ok(()), Err)
    }

    /// As [`wait`](Self::wait), for at most that long. Whether all is released.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_until(Instant::now().checked_add(timeout)) == Waited::Done
    }

    /// As [`wait`](Self::wait), for a task. A value that only `idle` keeps is asked about again at
    /// growing distances, woken by one helper thread of the process that lives as long as somebody
    /// waits so.
    ///
    /// # Errors
    /// As there.
    pub async fn wait_async(self) -> Result<(), ReleaseError> {
        let mut pause = Pause::new();
        loop {
            let seen = self.state.changes();
            let busy = self.core.settle_pending(&self.state);
            if self.state.pending_count() == 0 {
                return self.state.show_first_error().map_or(Ok(()), Err);
            }
            if waits::is_inside(self.core.cache_id()) {
                return Err(ReleaseError::WouldDeadlock);
            }
            let again = busy.then(|| Instant::now().checked_add(pause.next())).flatten();
            Until::new(again, |waker: &Waker| self.state.changed_since(seen, waker)).await;
        }
    }

    /// Gives up on what is still pending: the places are free at once, pins stay good, and the
    /// values are forgotten with their last pin instead of released. For handles that are gone
    /// already (a lost device), or a reader that never lets go. How many values and builds that
    /// were; a value whose release is under way on another thread is not among them.
    pub fn abandon(self) -> usize {
        self.core.abandon(&self.state)
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Waited {
        let mut pause = Pause::new();
        loop {
            let seen = self.state.changes();
            let busy = self.core.settle_pending(&self.state);
            if self.state.pending_count() == 0 {
                return Waited::Done;
            }
            if waits::is_inside(self.core.cache_id()) {
                return Waited::WouldDeadlock;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Waited::TimedOut;
            }
            let pause = busy.then(|| pause.next());
            let at_most = match (left, pause) {
                (Some(left), Some(pause)) => Some(left.min(pause)),
                (left, pause) => left.or(pause),
            };
            self.state.sleep(seen, at_most);
        }
    }
}

#[derive(PartialEq, Eq)]
enum Waited {
    Done,
    TimedOut,
    WouldDeadlock,
}

impl<K> Drop for Drain<K> {
    fn drop(&mut self) {
        for error in self.state.drop_handle() {
            self.core.sink(&error);
        }
    }
}

impl<K> fmt::Debug for Drain<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain")
            .field("released", &self.released())
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}
