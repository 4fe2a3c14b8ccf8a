//! The figures of a cache.

use std::time::Duration;

/// What a cache holds now, and what it has done since it was built.
///
/// The figures are of one instant, but for `hits`, which may lag behind by what other threads do
/// just then. At any time `built == released + abandoned + live`, where the live values are the
/// resident and the retired ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Statistics {
    /// Gauge: values resident and being built.
    pub entries: u64,
    /// Gauge: values being built.
    pub building: u64,
    /// Gauge: values that left the cache and are not released yet.
    pub retired: u64,
    /// Requests served by a resident value or by a build already running.
    pub hits: u64,
    /// Builds started, failed and taken-over ones too.
    pub misses: u64,
    /// Victims of the bound.
    pub evictions: u64,
    /// Requests that waited for another's build.
    pub waits: u64,
    /// Requests answered [`Busy`](crate::Error::Busy).
    pub refused: u64,
    /// Values built.
    pub built: u64,
    /// Values released.
    pub released: u64,
    /// Values abandoned.
    pub abandoned: u64,
    /// Builds that failed or panicked.
    pub build_failures: u64,
    /// Builds doomed by an eviction of their device, a clear or a removal.
    pub doomed: u64,
    /// Values handed out but not kept, because they did not fit.
    pub unretained: u64,
    /// Releases that failed or panicked.
    pub release_failures: u64,
    /// Time spent in builds, all threads together.
    pub build_time: Duration,
}
