//! The store: a folder of artifacts that any number of threads and processes use at once.
//!
//! There is no index and no lock. An artifact's file appears under its final name in one step, is
//! never changed, and is verified whenever it is read; so every state that another process or its
//! death can leave behind is either the old file, the new one, or none.

mod layout;
mod statistics;
mod temporary;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

pub use statistics::Statistics;

use crate::folder::Folder;
use crate::format::{self, MAX_FILE, Rejection};
use crate::key::EntryKey;
use crate::{Error, Group, location};
use layout::VERSION_FOLDER;
use statistics::{Counters, count};
use temporary::Temporary;

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
    /// Opened again when somebody has deleted it. No lock, which a fork could find held.
    folder: ArcSwap<Folder>,
    counters: Counters,
}

/// What [`ArtifactStore::find`] found under a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Found {
    /// The group, verified.
    Group(Group),
    /// Nothing.
    Nothing,
    /// A file that is not what it should be. The next put replaces it.
    Rejected(Rejection),
}

impl ArtifactStore {
    /// Opens the store in [`default_folder`](crate::default_folder).
    ///
    /// # Errors
    /// [`Error::NoLocation`], or as [`open`](Self::open).
    pub fn open_default() -> Result<Self, Error> {
        Self::open(location::default_folder()?)
    }

    /// Opens the store in this folder, which is made (for this user alone) if it is missing.
    ///
    /// Unfinished files that dead processes left there are cleared away; nothing else is looked at,
    /// so a full store opens as quickly as an empty one. A folder that can be read and not written
    /// is opened as well: then puts fail and gets work.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if anybody but this user and root could change what is in it,
    /// [`Error::Io`] if it can't be made or opened.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let path = folder.as_ref();
        // Absolute, so that it stays the same folder when the process changes its own.
        let path = std::path::absolute(path).map_err(Error::io("find", path))?;
        let folder = Folder::open(&path, VERSION_FOLDER)?;
        let counters = Counters::default();
        counters.swept.store(temporary::sweep(&folder), std::sync::atomic::Ordering::Relaxed);
        let folder = ArcSwap::from_pointee(folder);
        Ok(Self { shared: Arc::new(Shared { path, folder, counters }) })
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

    /// The group of this key, verified, or `None`. A file that is there but not whole, or of
    /// another key, is `None` as well, and counted.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if others could have changed the file, [`Error::Io`] if it is there
    /// and can't be read. The next [`put`](Self::put) replaces the file in either case.
    pub fn get(&self, key: &impl EntryKey) -> Result<Option<Group>, Error> {
        Ok(match self.find(key)? {
            Found::Group(group) => Some(group),
            Found::Nothing | Found::Rejected(_) => None,
        })
    }

    /// As [`get`](Self::get), but says why a file was not taken.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn find(&self, key: &impl EntryKey) -> Result<Found, Error> {
        let counters = &self.shared.counters;
        let fingerprint = key.fingerprint();
        let file = match self.shared.folder.load().read(&layout::file_name(&fingerprint), MAX_FILE)
        {
            Ok(Some(file)) => file,
            Ok(None) => {
                count(&counters.misses);
                return Ok(Found::Nothing);
            }
            Err(error) => {
                count(&counters.read_failures);
                return Err(error);
            }
        };
        let entry = format::parse(&file, Some(&fingerprint))
            .and_then(|entry| if is_of(&entry, key) { Ok(entry) } else { Err(Rejection::Key) });
        Ok(match entry {
            Ok(entry) => {
                count(&counters.hits);
                Found::Group(entry.into_group())
            }
            Err(rejection) => {
                counters.reject(&rejection);
                Found::Rejected(rejection)
            }
        })
    }

    /// Keeps this group under this key. What was there is replaced in one step: who reads meanwhile
    /// gets the old group or the new one, whole.
    ///
    /// # Errors
    /// [`Error::Refused`] for a group that may not be stored, [`Error::Io`] if it can't be written.
    /// What was there before is there still.
    pub fn put(&self, key: &impl EntryKey, group: &Group) -> Result<(), Error> {
        let written = self.write(key, group);
        let counters = &self.shared.counters;
        count(if written.is_ok() { &counters.writes } else { &counters.write_failures });
        written
    }

    /// Removes the artifact of this key. Says whether there was one.
    ///
    /// # Errors
    /// [`Error::Io`] if it is there and can't be removed.
    pub fn remove(&self, key: &impl EntryKey) -> Result<bool, Error> {
        let folder = self.shared.folder.load();
        let name = layout::file_name(&key.fingerprint());
        let removed =
            folder.remove(&name).map_err(Error::io("remove", folder.path().join(&name)))?;
        if removed {
            count(&self.shared.counters.removed);
        }
        Ok(removed)
    }

    /// What this store has done since it was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.counters.read()
    }

    fn write(&self, key: &impl EntryKey, group: &Group) -> Result<(), Error> {
        let file = format::encode(key, group)?;
        let name = layout::file_name(&key.fingerprint());
        let folder = self.shared.folder.load();
        let result = match write_in(&folder, &name, &file) {
            // Nothing can be made in a folder that was deleted: it is made anew, with the checks
            // that come with opening it.
            Err(error) if is_gone(&error) => {
                let folder = Arc::new(Folder::open(&self.shared.path, VERSION_FOLDER)?);
                self.shared.folder.store(Arc::clone(&folder));
                write_in(&folder, &name, &file)
            }
            result => result,
        };
        result.map_err(Error::io("write", folder.path().join(&name)))
    }
}

/// Writes and renames, and syncs nothing. Killing the process loses nothing that was renamed: the
/// system holds it. A loss of power may leave the name without all of the bytes; that is a rejected
/// file, and a kernel is compiled once more. Syncing would cost every put a few
/// milliseconds to save that.
fn write_in(folder: &Folder, name: &str, file: &[u8]) -> io::Result<()> {
    Temporary::write(folder, file)?.commit(name)
}

/// How a folder that was deleted shows; the second is a network file system's way.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

/// Whether the key's fields are those that the file was written with. A fingerprint stands for
/// them already, so this only catches a writer that got it wrong, or lied.
fn is_of(entry: &format::Entry, key: &impl EntryKey) -> bool {
    entry.namespace() == key.namespace()
        && entry.fields().map(|(name, value)| (name.into(), value.into())).eq(key.fields())
}
