//! The store: a folder of artifacts that any number of threads and processes use at once.
//!
//! There is no index, and no lock that a reader or writer needs. An artifact's file appears under its final name in one step, is
//! never changed, and is verified whenever it is read; so every state that another process or its
//! death can leave behind is either the old file, the new one, or none.

mod bound;
mod estimate;
mod layers;
pub(crate) mod layout;
mod lease;
mod loading;
mod look_up;
mod materialize;
mod options;
mod prune;
mod scan;
mod statistics;
mod stop;
mod temporary;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

pub use lease::{Lease, LookUp};
pub use loading::LoadMark;
pub use look_up::Found;
pub use options::{DEFAULT_LIMIT, Options};
pub use prune::Pruned;
pub use scan::{Fault, Scanned};
pub use statistics::Statistics;
pub(crate) use temporary::unique;

use crate::Error;
use crate::folder::Folder;
use crate::key::EntryKey;
use layers::Layer;
use layout::VERSION_FOLDER;
use loading::Loading;
use statistics::{Counters, Figure};

/// Artifacts in a folder. Cheap to clone: clones share the open folder and the figures.
///
/// It starts no thread, holds no lock between calls, and works on in a forked child.
#[derive(Clone, Debug)]
pub struct ArtifactStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    options: Options,
    /// Opened again when somebody has deleted it. No lock, which a fork could find held.
    folder: ArcSwap<Folder>,
    counters: Counters,
    loading: Loading,
    layers: Vec<Layer>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.counters.carry_now(&self.folder.load());
    }
}

impl ArtifactStore {
    /// Opens the store in [`default_folder`](crate::default_folder).
    ///
    /// # Errors
    /// [`Error::NoLocation`], or as [`open`](Self::open).
    pub fn open_default() -> Result<Self, Error> {
        Options::new().open_default()
    }

    /// Opens the store in this folder, which is made (for this user alone) if it is missing.
    ///
    /// It is bounded to [`DEFAULT_LIMIT`] bytes on disk; [`Options`] say otherwise.
    ///
    /// Unfinished files that dead processes left there are cleared away; nothing else is looked at,
    /// so a full store opens as quickly as an empty one. A folder that can be read and not written
    /// is opened as well: then puts fail and gets work.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if anybody but this user and root could change what is in it,
    /// [`Error::Io`] if it can't be made or opened.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Options::new().open(folder)
    }

    fn open_with(path: &Path, options: Options) -> Result<Self, Error> {
        // Absolute, so that it stays the same folder when the process changes its own.
        let path = std::path::absolute(path).map_err(Error::io("find", path))?;
        let layers = options.layers.iter().map(|layer| Layer::open(layer));
        let layers = layers.collect::<Result<_, _>>()?;
        let counters = Counters::new(options.counted && !options.use_only);
        let (folder, loading) = if options.use_only {
            let Some(folder) = Folder::open_existing(&path, VERSION_FOLDER)? else {
                let missing = std::io::ErrorKind::NotFound.into();
                return Err(Error::io("open", path.join(VERSION_FOLDER))(missing));
            };
            let loading = Loading::known(&folder);
            (folder, loading)
        } else {
            let folder = Folder::open(&path, VERSION_FOLDER)?;
            counters.add(Figure::Swept, temporary::sweep(&folder));
            counters.add(Figure::Crashes, Loading::examine(&folder));
            let loading = Loading::known(&folder);
            (folder, loading)
        };
        let folder = ArcSwap::from_pointee(folder);
        Ok(Self { shared: Arc::new(Shared { path, options, folder, counters, loading, layers }) })
    }

    /// Refuses to change a store that is only used.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.shared.options.use_only { Err(Error::UseOnly) } else { Ok(()) }
    }

    /// The folder that the store was opened in.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The file that holds, or would hold, the artifact of this key.
    #[must_use]
    pub fn file(&self, key: &impl EntryKey) -> PathBuf {
        self.shared.folder.load().path().join(layout::file_name(&key.fingerprint()))
    }

    /// What all processes have done with this folder, since it was made. A process carries its own there now and then and at its
    /// store's end; one that is killed takes up to a second of them with it.
    #[must_use]
    pub fn overall_statistics(&self) -> Statistics {
        let folder = self.shared.folder.load();
        self.shared.counters.carry_now(&folder);
        statistics::overall(&folder)
    }

    /// What this store has done since it was opened, in this process.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.counters.read()
    }
}
