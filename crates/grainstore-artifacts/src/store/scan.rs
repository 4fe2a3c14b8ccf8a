//! Going through what is there: everything, or one namespace of it.

use std::path::PathBuf;
use std::time::SystemTime;

use super::prune::each_artifact;
use super::statistics::Figure;
use super::{ArtifactStore, estimate, layout};
use crate::folder::Listed;
use crate::format::{self, Entry, MAX_FILE};
use crate::{Error, Rejection};

/// A file of the store, looked at.
#[derive(Debug)]
#[non_exhaustive]
pub struct Scanned {
    /// Where it is.
    pub path: PathBuf,
    /// How long it is, in bytes.
    pub length: u64,
    /// What it takes on disk, in bytes.
    pub disk: u64,
    /// When it was last used, to the hour.
    pub used: SystemTime,
    /// What is in it, verified.
    pub entry: Result<Entry, Fault>,
}

/// Why a file of the store is no good.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// It was read, and is not what it should be.
    Rejected(Rejection),
    /// It can't be read, or should not be.
    Unreadable(Error),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Unreadable(error) => error.fmt(f),
        }
    }
}

impl ArtifactStore {
    /// Every file of the store, in the order of their names, each read and verified when it is its
    /// turn. Looking marks nothing as used. What vanishes meanwhile is left out.
    pub fn files(&self) -> impl Iterator<Item = Result<Scanned, Error>> {
        let folder = self.shared.folder.load_full();
        layout::artifact_folders().flat_map(move |name| {
            let listed = match folder.files(&name) {
                Ok(files) => Ok(files.collect::<Vec<_>>()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(Error::io("list", folder.path().join(&name))(error)),
            };
            let (mut files, failed) = match listed {
                Ok(files) => (files, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
            let folder = folder.clone();
            let looked_at = move |listed: Listed| {
                let path = folder.path().join(&listed.name);
                let entry = match folder.read(&listed.name, MAX_FILE, None) {
                    Ok(None) => return None,
                    Ok(Some(file)) => match layout::fingerprint(&listed.name) {
                        Some(expected) => {
                            format::parse(&file, Some(&expected)).map_err(Fault::Rejected)
                        }
                        None => Err(Fault::Rejected(Rejection::NotAnArtifact)),
                    },
                    Err(error) => Err(Fault::Unreadable(error)),
                };
                Some(Ok(Scanned {
                    path,
                    length: listed.length,
                    disk: listed.disk,
                    used: listed.used,
                    entry,
                }))
            };
            files.into_iter().filter_map(looked_at).chain(failed)
        })
    }

    /// Every artifact of this namespace, verified. What is broken is passed over.
    pub fn scan(&self, namespace: &str) -> impl Iterator<Item = Result<Entry, Error>> {
        let wanted = move |entry: &Entry| entry.namespace() == namespace;
        self.files().filter_map(move |scanned| match scanned {
            Ok(scanned) => scanned.entry.ok().filter(wanted).map(Ok),
            Err(error) => Some(Err(error)),
        })
    }

    /// Removes every artifact of this namespace. Says how many there were.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder can't be read or an artifact can't be removed; those before it
    /// are gone. [`Error::Stopped`] as the [options](crate::Options::stop_when) say.
    pub fn purge(&self, namespace: &str) -> Result<u64, Error> {
        self.check_writable()?;
        let mut removed = 0;
        let purged = self.scan(namespace).try_for_each(|entry| {
            self.check_stop()?;
            let name = layout::file_name(&entry?.fingerprint());
            let folder = self.shared.folder.load();
            let gone = folder.remove(&name).map_err(Error::io("remove", folder.path().join(&name)));
            removed += u64::from(gone?);
            Ok(())
        });
        self.shared.counters.add(Figure::Removed, removed);
        purged.map(|()| removed)
    }

    /// Removes every artifact, and whatever else lies in their folders, and forgets whose
    /// [loading](Self::loading) ended a process. Says how many files there
    /// were.
    ///
    /// # Errors
    /// [`Error::Io`] if a folder can't be read or a file can't be removed; those before it are gone.
    /// [`Error::Stopped`] as the [options](crate::Options::stop_when) say.
    pub fn clear(&self) -> Result<u64, Error> {
        self.check_writable()?;
        let folder = self.shared.folder.load();
        let mut removed = 0;
        let cleared = each_artifact(&folder, |found| {
            self.check_stop()?;
            let gone = folder.remove(&found.name);
            let path = || folder.path().join(&found.name);
            removed += u64::from(gone.map_err(|error| Error::io("remove", path())(error))?);
            Ok(())
        });
        self.shared.counters.add(Figure::Removed, removed);
        cleared?;
        let _ = estimate::set(&folder, 0);
        self.forgive_all();
        Ok(removed)
    }
}
