//! How a store is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::stop::Stop;
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
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(super) limit: Option<u64>,
    pub(super) lease_age: Duration,
    pub(super) use_only: bool,
    pub(super) counted: bool,
    pub(super) layers: Vec<PathBuf>,
    pub(super) stop: Stop,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: Some(DEFAULT_LIMIT),
            lease_age: Duration::from_secs(10 * 60),
            use_only: false,
            counted: true,
            layers: Vec::new(),
            stop: Stop::default(),
        }
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

    /// One more layer below the store: a bundle, or a folder laid out as a store is, such as an
    /// unpacked bundle or a mounted image. It may be read-only and `noexec`, and nothing is ever
    /// written to it. What the store itself lacks is looked for there, in the order of the layers.
    ///
    /// A layer is trusted by the same rule as the store: nobody but this user and root may be able
    /// to change it.
    pub fn layer(mut self, path: impl Into<PathBuf>) -> Self {
        self.layers.push(path.into());
        self
    }

    /// Uses what is there, and changes nothing: nothing is put, removed, marked, locked, swept or
    /// counted on disk, and the folder must exist. Calls that would change something are
    /// [`Error::UseOnly`]; behind a runtime, puts are passed over in silence.
    pub fn use_only(mut self) -> Self {
        self.use_only = true;
        self
    }

    /// Adds nothing of what this store does to the [figures](ArtifactStore::overall_statistics) of
    /// its folder: for those who only try whether it works.
    pub fn uncounted(mut self) -> Self {
        self.counted = false;
        self
    }

    /// Has the calls that go through many artifacts ask this before each of them, and end with
    /// [`Error::Stopped`] once the answer is yes: [`pack`](ArtifactStore::pack),
    /// [`unpack`](ArtifactStore::unpack), [`prune`](ArtifactStore::prune),
    /// [`purge`](ArtifactStore::purge), [`clear`](ArtifactStore::clear). For programs that end in
    /// order when a signal comes: no unfinished bundle stays, and what was taken or removed until
    /// then is whole or gone.
    pub fn stop_when(mut self, asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stop = Stop::when(asked);
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
