//! What a clear of several backends has still to release.

use std::time::{Duration, Instant};

use grainstore::{Drain, KernelKey, ReleaseError};

/// The drains of all backends, as one.
#[derive(Debug)]
#[must_use = "what is still pinned is released later; wait for it where that matters"]
pub struct Drains(pub(super) Vec<Drain<KernelKey>>);

impl Drains {
    /// How many modules have been released.
    #[must_use]
    pub fn released(&self) -> usize {
        self.0.iter().map(Drain::released).sum()
    }

    /// How many are still held.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.0.iter().map(Drain::pending).sum()
    }

    /// What is still held.
    #[must_use]
    pub fn pending_keys(&self) -> Vec<KernelKey> {
        self.0.iter().flat_map(Drain::pending_keys).collect()
    }

    /// What releases have failed.
    #[must_use]
    pub fn errors(&self) -> Vec<ReleaseError> {
        self.0.iter().flat_map(Drain::errors).collect()
    }

    /// Waits until all has been released.
    ///
    /// # Errors
    /// The first release that failed.
    pub fn wait(self) -> Result<(), ReleaseError> {
        // All are waited for, whatever the first one says.
        self.0.into_iter().map(Drain::wait).fold(Ok(()), Result::and)
    }

    /// As [`wait`](Self::wait), for a task.
    ///
    /// # Errors
    /// As there.
    pub async fn wait_async(self) -> Result<(), ReleaseError> {
        let mut first = Ok(());
        for drain in self.0 {
            first = first.and(drain.wait_async().await);
        }
        first
    }

    /// Waits for at most this long, and says whether all has been released.
    #[must_use]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        let began = Instant::now();
        self.0.iter().all(|drain| drain.wait_timeout(timeout.saturating_sub(began.elapsed())))
    }
}
