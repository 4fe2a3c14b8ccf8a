//! Looking up: what is handed out was verified, and everything else is a miss.

use std::time::SystemTime;

use super::statistics::Figure;
use super::{ArtifactStore, layout};
use crate::format::{self, MAX_FILE, Rejection};
use crate::key::EntryKey;
use crate::{Error, Group};

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
    /// The group of this key, verified, or `None`. A file that is there but not whole, or of
    /// another key, is `None` as well, and counted.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if others could have changed the file, [`Error::Io`] if it is there
    /// and can't be read: the next [`put`](Self::put) replaces the file in either case.
    /// [`Error::Quarantined`] if [loading](Self::loading) it ended the process twice.
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
        self.counted(self.look_up(key))
    }

    /// What is there, counted nowhere: for those who look twice on behalf of one request.
    pub(super) fn look_up(&self, key: &impl EntryKey) -> Result<Found, Error> {
        let fingerprint = key.fingerprint();
        self.check_quarantine(&fingerprint)?;
        let name = layout::file_name(&fingerprint);
        let now = SystemTime::now();
        let Some(file) = self.shared.folder.load().read(&name, MAX_FILE, Some(now))? else {
            return Ok(Found::Nothing);
        };
        let entry = format::parse(&file, Some(&fingerprint))
            .and_then(|entry| if is_of(&entry, key) { Ok(entry) } else { Err(Rejection::Key) });
        Ok(match entry {
            Ok(entry) => Found::Group(entry.into_group()),
            Err(rejection) => Found::Rejected(rejection),
        })
    }

    /// Counts what a request came to.
    pub(super) fn counted(&self, outcome: Result<Found, Error>) -> Result<Found, Error> {
        let counters = &self.shared.counters;
        match &outcome {
            Ok(Found::Group(group)) => {
                counters.count(Figure::Hits);
                counters.add_time(Figure::Saved, group.compile_time());
            }
            Ok(Found::Nothing) => counters.count(Figure::Misses),
            Ok(Found::Rejected(rejection)) => counters.reject(rejection),
            Err(_) => counters.count(Figure::ReadFailures),
        }
        counters.carry_sometimes(&self.shared.folder.load());
        outcome
    }
}

/// Whether the key's fields are those that the file was written with. A fingerprint stands for
/// them already, so this only catches a writer that got it wrong, or lied.
fn is_of(entry: &format::Entry, key: &impl EntryKey) -> bool {
    entry.namespace() == key.namespace()
        && entry.fields().map(|(name, value)| (name.into(), value.into())).eq(key.fields())
}
