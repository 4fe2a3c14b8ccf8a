//! Keeping the store within its bound.
//!
//! Two passes over the folders: the first sums what is there by age, [`bound`](super::bound) decides,
//! the second removes. Neither remembers an entry, so memory stays the same however many there are.
//! Removing a file leaves it to those who have it open. What vanishes between two steps is not
//! there; a mark that is renewed between them saves its file.

use std::time::{Duration, SystemTime};

use super::bound::{Ages, Verdict};
use super::layout::{self, VERSION_FOLDER};
use super::statistics::Figure;
use super::{ArtifactStore, estimate, temporary};
use crate::Error;
use crate::folder::{Folder, Listed};
use crate::lock::{self, Attempt, Place, Waited};

/// How long [`ArtifactStore::prune`] waits for another process that prunes.
const WAIT: Duration = Duration::from_secs(30);

/// What pruning did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// How many files stay.
    pub kept: u64,
    /// What they take on disk, in bytes.
    pub kept_bytes: u64,
    /// How many files were removed.
    pub removed: u64,
    /// What they took on disk, in bytes.
    pub removed_bytes: u64,
}

impl ArtifactStore {
    /// Removes the artifacts that were not used for longest, until what is left takes at most
    /// `limit` bytes on disk; those of earlier versions of the format count as well. Who is just
    /// loading one of them is not disturbed.
    ///
    /// Nobody need call this: a put prunes by itself when the store has outgrown its
    /// [limit](crate::Options::limit). A process that is pruning already is waited for.
    ///
    /// # Errors
    /// [`Error::Io`] if something that had to go could not be removed, or the folder can't be read;
    /// [`Error::Stopped`] as the [options](crate::Options::stop_when) say.
    pub fn prune(&self, limit: u64) -> Result<Pruned, Error> {
        self.check_writable()?;
        let folder = self.shared.folder.load();
        // Held or not: where there are no locks, two that prune at once remove a little too much.
        let _lock = match lock::wait(&folder, Place::PRUNE, WAIT, |_| self.is_stopped()) {
            Waited::Held { lock, .. } => Some(lock),
            Waited::TooLong | Waited::NoLocks => None,
        };
        self.check_stop()?;
        self.prune_locked(&folder, limit)
    }

    /// Counts what was just written, and prunes if that was too much. What fails here fails no put:
    /// the next one tries again.
    pub(super) fn written(&self, folder: &Folder, length: u64) {
        let Some(limit) = self.shared.options.limit else { return };
        match estimate::add(folder, length) {
            Ok(Some(estimate)) if estimate <= limit => return,
            // Too much; or nobody has counted yet, which in a new store is quickly done.
            Ok(_) => {}
            // A disk that is full, say. Counting at every put would not help it.
            Err(_) => return,
        }
        let _lock = match lock::attempt(folder, Place::PRUNE) {
            Attempt::Held(lock) => Some(lock),
            Attempt::Taken(_) => return,
            Attempt::Unknown => None,
        };
        // Below the limit, so that not every put has to.
        let _ = self.prune_locked(folder, limit - limit / 16);
    }

    fn prune_locked(&self, folder: &Folder, limit: u64) -> Result<Pruned, Error> {
        let swept = temporary::sweep(folder);
        self.shared.counters.add(Figure::Swept, swept);
        let now = SystemTime::now();
        let earlier = earlier_versions(&self.shared.path);
        let all = || std::iter::once(folder).chain(&earlier);

        let mut ages = Ages::default();
        for folder in all() {
            each_artifact(folder, |found| {
                self.check_stop()?;
                ages.add(now, found.used, found.disk);
                Ok(())
            })?;
        }
        let mut pruned = Pruned::default();
        let mut failure = None;
        let mut cut = ages.cut(now, limit);
        let gone_through = all().try_for_each(|folder| {
            each_artifact(folder, |found| {
                self.check_stop()?;
                match cut.verdict(found.used, found.disk) {
                    Verdict::Oldest => match folder.remove(&found.name) {
                        Ok(true) => {
                            pruned.removed += 1;
                            pruned.removed_bytes += found.disk;
                            return Ok(());
                        }
                        Ok(false) => return Ok(()),
                        Err(error) => {
                            let path = folder.path().join(&found.name);
                            failure.get_or_insert(Error::io("remove", path)(error));
                        }
                    },
                    Verdict::Misdated => drop(folder.mark(&found.name)),
                    Verdict::Recent | Verdict::Spared => {}
                }
                pruned.kept += 1;
                pruned.kept_bytes += found.disk;
                Ok(())
            })
        });
        // Counted however it ended. The estimate is left too high then, so that a put looks again.
        self.shared.counters.add(Figure::Pruned, pruned.removed);
        gone_through?;
        // What can't be removed is not tried again at every put.
        let _ = estimate::set(folder, pruned.kept_bytes.min(limit));
        match failure {
            Some(error) if pruned.kept_bytes > limit => Err(error),
            _ => Ok(pruned),
        }
    }
}

/// Every artifact's file in this folder, and whatever else lies beside them. Folders that are not
/// there hold nothing.
pub(super) fn each_artifact(
    folder: &Folder,
    mut visit: impl FnMut(Listed) -> Result<(), Error>,
) -> Result<(), Error> {
    for name in layout::artifact_folders() {
        let files = match folder.files(&name) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            files => files.map_err(Error::io("list", folder.path().join(&name)))?,
        };
        for found in files {
            visit(found)?;
        }
    }
    Ok(())
}

/// The folders that earlier releases left behind. They are bounded together with ours, since the
/// disk is the same; one that is not trusted is nobody's.
fn earlier_versions(store: &std::path::Path) -> Vec<Folder> {
    let Ok(names) = std::fs::read_dir(store) else { return Vec::new() };
    let names = names.filter_map(|found| found.ok()?.file_name().into_string().ok());
    let is_version = |name: &String| {
        let number = name.strip_prefix('v').unwrap_or_default();
        name != VERSION_FOLDER && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    names
        .filter(is_version)
        .filter_map(|name| Folder::open_existing(store, &name).ok().flatten())
        .collect()
}
