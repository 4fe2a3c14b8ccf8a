//! The store's folder, held open: every call on a file in it goes through the handle, so that a
//! folder swapped behind the name is never read by mistake.
//!
//! On Unix these are the calls relative to a folder's descriptor, with trust checked on what was
//! opened. Elsewhere they are plain calls on paths.

#[cfg(not(unix))]
mod plain;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod way;

#[cfg(not(unix))]
pub(crate) use plain::{Folder, open_trusted};
#[cfg(unix)]
pub(crate) use unix::{Folder, open_trusted};

use std::time::{Duration, SystemTime};

/// A file that was found in a folder.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Its name, relative to the folder that was asked.
    pub(crate) name: String,
    /// When it was last changed, which for artifacts is when they were last marked as used.
    pub(crate) used: SystemTime,
    /// What it takes on disk.
    pub(crate) disk: u64,
    /// How long it is.
    pub(crate) length: u64,
}

/// How old a mark of use may become before a use renews it. It is what keeps warm starts from
/// writing.
pub(crate) const MARK_FOR: Duration = Duration::from_secs(60 * 60);

/// How far apart two times are, whichever is the later.
pub(crate) fn distance(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).unwrap_or_else(|ahead| ahead.duration())
}
