//! Writing: a file appears under its name in one step, or not at all.

use std::io;
use std::sync::Arc;

use super::layout::VERSION_FOLDER;
use super::statistics::count;
use super::temporary::Temporary;
use super::{ArtifactStore, layout};
use crate::folder::Folder;
use crate::format;
use crate::key::EntryKey;
use crate::{Error, Group};

impl ArtifactStore {
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

    fn write(&self, key: &impl EntryKey, group: &Group) -> Result<(), Error> {
        let file = format::encode(key, group)?;
        let name = layout::file_name(&key.fingerprint());
        let mut folder = self.shared.folder.load_full();
        let result = match write_in(&folder, &name, &file) {
            // Nothing can be made in a folder that was deleted: it is made anew, with the checks
            // that come with opening it.
            Err(error) if is_gone(&error) => {
                folder = Arc::new(Folder::open(&self.shared.path, VERSION_FOLDER)?);
                self.shared.folder.store(Arc::clone(&folder));
                write_in(&folder, &name, &file)
            }
            result => result,
        };
        result.map_err(Error::io("write", folder.path().join(&name)))?;
        self.written(&folder, file.len() as u64);
        Ok(())
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
