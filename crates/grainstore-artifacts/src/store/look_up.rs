//! Looking up: what is handed out was verified, and everything else is a miss.

use std::time::SystemTime;

use bytes::Bytes;
use grainstore::Fingerprint;

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
        let own = verified(self.read_file(&fingerprint)?, key);
        if let Found::Group(_) = own {
            return Ok(own);
        }
        for layer in &self.shared.layers {
            // What is wrong with a layer's file is worth no more than the next layer's.
            if let Found::Group(group) = verified(layer.read(&fingerprint)?, key) {
                return Ok(Found::Group(group));
            }
        }
        Ok(own)
    }

    /// The bytes of an artifact's file, unverified, marked as used.
    pub(crate) fn read_file(&self, fingerprint: &Fingerprint) -> Result<Option<Bytes>, Error> {
        let now = (!self.shared.options.use_only).then(SystemTime::now);
        self.shared.folder.load().read(&layout::file_name(fingerprint), MAX_FILE, now)
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

fn verified(file: Option<Bytes>, key: &impl EntryKey) -> Found {
    let Some(file) = file else { return Found::Nothing };
    let entry = format::parse(&file, Some(&key.fingerprint()))
        .and_then(|entry| if is_of(&entry, key) { Ok(entry) } else { Err(Rejection::Key) });
    match entry {
        Ok(entry) => Found::Group(entry.into_group()),
        Err(rejection) => Found::Rejected(rejection),
    }
}

/// Whether the key's fields are those that the file was written with. A fingerprint stands for
/// them already, so this only catches a writer that got it wrong, or lied.
fn is_of(entry: &format::Entry, key: &impl EntryKey) -> bool {
    entry.namespace() == key.namespace()
        && entry.fields().map(|(name, value)| (name.into(), value.into())).eq(key.fields())
}
