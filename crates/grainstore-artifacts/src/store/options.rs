//! How a store is opened.

use std::path::Path;
use std::time::Duration;

use crate::{ArtifactStore, Error, location};

/// What a store may take on disk unless somebody says otherwise: 1 GiB.
pub const DEFAULT_LIMIT: u64 = 1 << 30;

/// How a store is opened. [`ArtifactStore::open`] takes the default.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// use grainstore_artifacts::Options;
/// let store = Options::new().limit(200 << 20).open(folder)?;
/// # Ok::<(), grainstore_artifacts::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(super) limit: Option<u64>,
    pub(super) lease_age: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { limit: Some(DEFAULT_LIMIT), lease_age: Duration::from_secs(10 * 60) }
    }
}

impl Options {
    /// The default: at most [`DEFAULT_LIMIT`] bytes on disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bytes the artifacts may take on disk. A put that goes beyond it removes those that
    /// were not used for longest, down to fifteen sixteenths of it.
    ///
    /// The limit belongs to whoever writes: programs that share a folder should agree on it.
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// No bound at all: somebody else looks after the disk, with [`ArtifactStore::prune`] or
    /// otherwise.
    pub fn unlimited(mut self) -> Self {
        self.limit = None;
        self
    }

    /// How old another's lease may be and still be waited for. Ten minutes without it.
    ///
    /// A process that dies drops its leases; this is for those that live and have forgotten one.
    pub fn lease_age(mut self, greatest: Duration) -> Self {
        self.lease_age = greatest;
        self
    }

    /// Opens the store in this folder, as [`ArtifactStore::open`] does.
    ///
    /// # Errors
    /// As [`ArtifactStore::open`].
    pub fn open(self, folder: impl AsRef<Path>) -> Result<ArtifactStore, Error> {
        ArtifactStore::open_with(folder.as_ref(), self)
    }

    /// Opens the store in [`default_folder`](crate::default_folder).
    ///
    /// # Errors
    /// As [`ArtifactStore::open_default`].
    pub fn open_default(self) -> Result<ArtifactStore, Error> {
        self.open(location::default_folder()?)
    }
}
