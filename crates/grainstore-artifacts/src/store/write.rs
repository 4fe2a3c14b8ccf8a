//! Writing: a file appears under its name in one step, or not at all.

use std::io;
use std::sync::Arc;

use grainstore::Fingerprint;

use super::layout::VERSION_FOLDER;
use super::look_up::Found;
use super::statistics::Figure;
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
        self.put_how(key, group, How::Anyway)
    }

    /// Keeps this group under this key unless there is one. Gives the one that was there, verified:
    /// of any number that put at once, one does, and the others get its group. What is there and
    /// broken is replaced.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`put`](Self::put).
    pub fn put_if_absent(
        &self,
        key: &impl EntryKey,
        group: &Group,
    ) -> Result<Option<Group>, Error> {
        loop {
            let how = match self.look_up(key)? {
                Found::Group(found) => {
                    self.shared.counters.count(Figure::Hits);
                    return Ok(Some(found));
                }
                Found::Nothing => How::IfAbsent,
                Found::Rejected(_) => How::Anyway,
            };
            match self.put_how(key, group, how) {
                // Somebody was faster: who gets in now is looked at once more.
                Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {}
                put => return put.map(|()| None),
            }
        }
    }

    /// Keeps this group under this key if there is one already, and gives that one, verified. Where
    /// there is none, or a broken one, nothing is kept, and the answer is `None`.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`put`](Self::put).
    pub fn replace(&self, key: &impl EntryKey, group: &Group) -> Result<Option<Group>, Error> {
        match self.look_up(key)? {
            Found::Group(found) => self.put(key, group).map(|()| Some(found)),
            Found::Nothing | Found::Rejected(_) => Ok(None),
        }
    }

    /// Marks the artifact of this key as used just now, so that it is pruned later. Says whether
    /// there is one. (Every [`get`](Self::get) does so, but not more than once an hour.)
    ///
    /// # Errors
    /// [`Error::Io`] if it is there and can't be marked.
    pub fn touch(&self, key: &impl EntryKey) -> Result<bool, Error> {
        self.check_writable()?;
        let folder = self.shared.folder.load();
        let name = layout::file_name(&key.fingerprint());
        folder.mark(&name).map_err(Error::io("mark", folder.path().join(&name)))
    }

    /// Removes the artifact of this key, and forgets that [loading](Self::loading) it ended a
    /// process. Says whether there was one.
    ///
    /// # Errors
    /// [`Error::Io`] if it is there and can't be removed.
    pub fn remove(&self, key: &impl EntryKey) -> Result<bool, Error> {
        self.check_writable()?;
        let folder = self.shared.folder.load();
        self.forgive(&key.fingerprint());
        let name = layout::file_name(&key.fingerprint());
        let removed =
            folder.remove(&name).map_err(Error::io("remove", folder.path().join(&name)))?;
        if removed {
            self.shared.counters.count(Figure::Removed);
        }
        Ok(removed)
    }

    fn put_how(&self, key: &impl EntryKey, group: &Group, how: How) -> Result<(), Error> {
        let written = self.write(key, group, how);
        self.count(&written, Figure::Writes);
        if written.is_ok() {
            self.shared.counters.add_time(Figure::CompileTime, group.compile_time());
        }
        written
    }

    fn count(&self, written: &Result<(), Error>, success: Figure) {
        let counters = &self.shared.counters;
        match written {
            Ok(()) => counters.count(success),
            // Somebody else has written it.
            Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => counters.count(Figure::WriteFailures),
        }
    }

    fn write(&self, key: &impl EntryKey, group: &Group, how: How) -> Result<(), Error> {
        self.check_writable()?;
        self.write_file(&key.fingerprint(), &format::encode(key, group)?, how)
    }

    /// Takes a file that is whole, unless there is a whole one. Says whether it did.
    pub(crate) fn take(&self, fingerprint: &Fingerprint, file: &[u8]) -> Result<bool, Error> {
        let there = self.read_file(fingerprint)?;
        if there.is_some_and(|there| format::parse(&there, Some(fingerprint)).is_ok()) {
            return Ok(false);
        }
        let written = self.write_file(fingerprint, file, How::Anyway);
        self.count(&written, Figure::Imported);
        written.map(|()| true)
    }

    fn write_file(&self, fingerprint: &Fingerprint, file: &[u8], how: How) -> Result<(), Error> {
        let name = layout::file_name(fingerprint);
        let mut folder = self.shared.folder.load_full();
        let result = match write_in(&folder, &name, file, how) {
            // Nothing can be made in a folder that was deleted: it is made anew, with the checks
            // that come with opening it.
            Err(error) if is_gone(&error) => {
                folder = Arc::new(Folder::open(&self.shared.path, VERSION_FOLDER)?);
                self.shared.folder.store(Arc::clone(&folder));
                write_in(&folder, &name, file, how)
            }
            result => result,
        };
        result.map_err(Error::io("write", folder.path().join(&name)))?;
        self.written(&folder, file.len() as u64);
        self.shared.counters.carry_sometimes(&folder);
        Ok(())
    }
}

/// What to do with a file that is there.
#[derive(Clone, Copy)]
enum How {
    /// Replace it.
    Anyway,
    /// Leave it, and say `AlreadyExists`.
    IfAbsent,
}

/// Writes and renames, and syncs nothing. Killing the process loses nothing that was renamed: the
/// system holds it. A loss of power may leave the name without all of the bytes; that is a rejected
/// file, and a kernel is compiled once more. Syncing would cost every put a few
/// milliseconds to save that.
fn write_in(folder: &Folder, name: &str, file: &[u8], how: How) -> io::Result<()> {
    let temporary = Temporary::write(folder, file)?;
    match how {
        How::Anyway => temporary.commit(name),
        How::IfAbsent => temporary.commit_new(name),
    }
}

/// How a folder that was deleted shows; the second is a network file system's way.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}
