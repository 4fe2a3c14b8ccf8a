//! One compile for all processes: who misses first gets a lease, the others wait for it.

use std::fs::File;
use std::time::{Duration, SystemTime};

use super::ArtifactStore;
use super::look_up::Found;
use super::statistics::Figure;
use crate::key::EntryKey;
use crate::lock::{self, Lock, Place, Waited};
use crate::{Error, Group};

/// What [`ArtifactStore::lookup_or_lease`] gives.
#[derive(Debug)]
pub enum LookUp {
    /// The group, verified.
    Hit(Group),
    /// There is none: make it, put it, and then drop the lease.
    Lease(Lease),
}

/// The task of making what is missing. While it is held, other threads and processes that ask for
/// the same key with [`ArtifactStore::lookup_or_lease`] wait. Dropping it releases it, and so does
/// the end of the process, whatever ended it.
#[derive(Debug)]
#[must_use = "dropped at once, nobody waits for what is being made"]
pub struct Lease {
    lock: Option<Lock>,
}

impl Lease {
    /// Whether others wait for it. They do not where the file system has no locks, after waiting in
    /// vain, and in a forked child of the process that got it.
    #[must_use]
    pub fn is_exclusive(&self) -> bool {
        self.lock.as_ref().is_some_and(Lock::is_ours)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.as_ref().filter(|lock| lock.is_ours()) {
            lock.unnote();
        }
    }
}

impl ArtifactStore {
    /// The group of this key, or the lease to make it: for callers whose look-up and put are two
    /// separate calls, among any number of threads and processes.
    ///
    /// Where another has the lease, this waits until it is dropped, and looks again. After `bound`
    /// it waits no longer and gives a lease that is not exclusive: the caller makes the group as
    /// well, and nothing is wrong but that it is made twice. The same where there are no locks, where
    /// the other's lease is older than its [greatest age](crate::Options::lease_age), and where the
    /// other has dropped it and put nothing: what one could not make, the others try at once. After a
    /// process that died with its lease, only one does.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let key = grainstore::KernelKey::builder("saxpy").build()?;
    /// # fn compile() -> Vec<u8> { vec![1] }
    /// use std::time::Duration;
    /// use grainstore_artifacts::{ArtifactStore, Group, LookUp};
    ///
    /// let store = ArtifactStore::open(folder.path())?;
    /// let group = match store.lookup_or_lease(&key, Duration::from_secs(60))? {
    ///     LookUp::Hit(group) => group,
    ///     LookUp::Lease(lease) => {
    ///         let group = Group::new("saxpy.o", compile());
    ///         store.put(&key, &group)?;
    ///         drop(lease); // now the others find it
    ///         group
    ///     }
    /// };
    /// # assert_eq!(group.binary(), [1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn lookup_or_lease(&self, key: &impl EntryKey, bound: Duration) -> Result<LookUp, Error> {
        let first = self.look_up(key);
        let is_miss = matches!(first, Ok(Found::Nothing | Found::Rejected(_)));
        if !is_miss || self.shared.options.use_only {
            return self.counted(first).map(|found| match found {
                Found::Group(group) => LookUp::Hit(group),
                Found::Nothing | Found::Rejected(_) => LookUp::Lease(Lease { lock: None }),
            });
        }
        let place = Place::of(&key.fingerprint());
        let greatest_age = self.shared.options.lease_age;
        let too_old = |locks: &File| {
            let noted = lock::noted(locks, place);
            let age = noted.and_then(|noted| SystemTime::now().duration_since(noted).ok());
            age.is_some_and(|age| age > greatest_age)
        };
        let folder = self.shared.folder.load();
        let lease = match lock::wait(&folder, place, bound, too_old) {
            Waited::Held { lock, waited } => {
                if waited {
                    self.shared.counters.count(Figure::Waited);
                }
                // Who released it in an orderly way and leaves nothing could not make it, or does
                // not keep it. The next will fare no better, so all try at once and not in turn.
                let in_vain = waited && !lock.was_lost();
                if !in_vain {
                    lock.note(SystemTime::now());
                }
                Lease { lock: Some(lock).filter(|_| !in_vain) }
            }
            Waited::TooLong | Waited::NoLocks => Lease { lock: None },
        };
        // Between the look and the lock another may have put it and released the lock, also where
        // nobody waited.
        match self.counted(self.look_up(key))? {
            Found::Group(group) => Ok(LookUp::Hit(group)),
            Found::Nothing | Found::Rejected(_) => Ok(LookUp::Lease(lease)),
        }
    }
}
