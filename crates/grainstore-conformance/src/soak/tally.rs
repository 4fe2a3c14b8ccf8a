//! What a soak has counted.

use std::fmt;
use std::time::Duration;

use crate::Verdict;

/// The outcome of a soak.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tally {
    /// The subject's name.
    pub subject: String,
    /// How long it went on, from the first launch of each round.
    pub elapsed: Duration,
    /// Launches whose every number was checked.
    pub launches: u64,
    /// Clears, removals, evictions, destructions and resets.
    pub teardowns: u64,
    /// Releases that a teardown had to leave for later, since the kernel or plan was pinned or its
    /// work not done.
    pub deferred: u64,
    /// Launches with a wrong number, and whatever else should not have happened.
    pub wrong: u64,
    /// Native handles that were left at the ends of all rounds.
    pub handles: u64,
    /// Passed where nothing was wrong and no handle left; not run where there was no driver.
    pub verdict: Verdict,
}

impl Tally {
    pub(super) fn new(subject: &str) -> Self {
        Self {
            subject: subject.to_owned(),
            elapsed: Duration::ZERO,
            launches: 0,
            teardowns: 0,
            deferred: 0,
            wrong: 0,
            handles: 0,
            verdict: Verdict::Passed,
        }
    }
}

/// One row: subject, minutes, launches, teardowns, deferred releases, wrong results, handles left.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, elapsed, launches, teardowns, deferred, wrong, handles, .. } = self;
        let minutes = elapsed.as_secs_f64() / 60.0;
        write!(
            f,
            "{subject} | {minutes:.2} | {launches} | {teardowns} | {deferred} | {wrong} | {handles}"
        )
    }
}
