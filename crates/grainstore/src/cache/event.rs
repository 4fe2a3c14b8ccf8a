//! What an observer is told.

use std::time::Duration;

use crate::{DeviceId, Error, ReleaseError};

/// Something that happened to one value of a cache. Never a hit.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a, K> {
    /// The value's key.
    pub key: &'a K,
    /// The devices it lives on: none, one, or several.
    pub devices: &'a [DeviceId],
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened to a value.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// Its build begins, with a place of its own.
    BuildStarted,
    /// Its build is over.
    BuildFinished {
        /// How long the build ran.
        took: Duration,
        /// Why there is no value, if there is none.
        error: Option<&'a Error>,
    },
    /// It is the victim of a bound, and will be released now.
    Evicted,
    /// It left the cache by a clear, a device's eviction, or a removal.
    Retired,
    /// It has been released.
    Released,
    /// It has been released, and its release failed.
    ReleaseFailed {
        /// In what way.
        error: &'a ReleaseError,
    },
    /// It was abandoned: it will be forgotten instead of released.
    Abandoned,
}
