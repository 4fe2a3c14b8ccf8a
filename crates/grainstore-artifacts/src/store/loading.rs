//! Artifacts whose loading ends the process: noticed by the next one, and kept from loaders.
//!
//! Each process that loads has a journal in the folder `loading`, a file that it holds locked while
//! it lives. Before an artifact goes to a loader its fingerprint is written there, and afterwards it
//! is wiped out: two small writes. A journal that nobody holds is of a process that died, and what
//! it names was being loaded: that is a crash of each, noted in `crashed`. After the second one the
//! artifact is *quarantined*. A load that comes back forgives an earlier crash.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use arc_swap::{ArcSwap, ArcSwapOption};
use grainstore::Fingerprint;

use super::ArtifactStore;
use super::temporary::Temporary;
use crate::folder::Folder;
use crate::key::EntryKey;
use crate::lock;
use crate::{Error, positioned as at};

const JOURNALS: &str = "loading";
const CRASHED: &str = "crashed";
/// How many loads of one process can be noted at once. Those beyond are not watched.
const SLOTS: usize = 64;
const SLOT: usize = 32;
/// After how many crashes an artifact is quarantined.
const TOO_MANY: u64 = 2;
/// How many journals one opening looks at, so that it stays quick. The next one goes on.
const EXAMINE_AT_MOST: usize = 256;

/// What is known of loads that ended a process, and this process's journal.
#[derive(Debug, Default)]
pub(super) struct Loading {
    journal: ArcSwapOption<Journal>,
    /// There can be no journal here: nothing is written, or nothing locked.
    without: AtomicBool,
    /// How often loading which artifact ended a process. Almost always empty.
    crashes: ArcSwap<HashMap<Fingerprint, u64>>,
}

/// The note that an artifact is being loaded. Dropping it says that the loader came back.
#[derive(Debug)]
#[must_use = "dropped at once, it says that the loader came back"]
pub struct LoadMark {
    journal: Arc<Journal>,
    slot: usize,
    /// Set where an earlier load of it ended a process.
    suspect: Option<(ArtifactStore, Fingerprint)>,
}

#[derive(Debug)]
struct Journal {
    /// Locked as long as it is open.
    file: File,
    name: String,
    folder: Arc<Folder>,
    process: u32,
    /// Which slots are in use, a bit for each.
    used: AtomicU64,
}

impl ArtifactStore {
    /// To be called before an artifact of this store goes to a loader that might crash; what it
    /// gives is to be dropped when the loader came back, with or without success. If the process
    /// ends instead, the next one that opens the store knows; after the second time the artifact is
    /// not handed out any more.
    ///
    /// It gives nothing where it could not tell a crash from a process that is alive: where there
    /// are no locks, or nothing can be written.
    pub fn loading(&self, key: &impl EntryKey) -> Option<LoadMark> {
        let loading = &self.shared.loading;
        let journal = loading.journal(self)?;
        let fingerprint = key.fingerprint();
        let slot = journal.note(&fingerprint)?;
        let suspect = loading.crashes.load().contains_key(&fingerprint);
        Some(LoadMark { journal, slot, suspect: suspect.then(|| (self.clone(), fingerprint)) })
    }

    /// Forgets that loading this artifact ended a process.
    pub(super) fn forgive(&self, fingerprint: &Fingerprint) {
        let loading = &self.shared.loading;
        if loading.crashes.load().contains_key(fingerprint) {
            let _ = self.shared.folder.load().remove(&record(fingerprint));
            loading.crashes.rcu(|crashes| {
                let mut crashes = HashMap::clone(crashes);
                crashes.remove(fingerprint);
                crashes
            });
        }
    }

    /// Forgets it for all.
    pub(super) fn forgive_all(&self) {
        let all: Vec<_> = self.shared.loading.crashes.load().keys().copied().collect();
        all.iter().for_each(|fingerprint| self.forgive(fingerprint));
    }

    /// Refuses an artifact whose loading ended the process too often.
    pub(crate) fn check_quarantine(&self, fingerprint: &Fingerprint) -> Result<(), Error> {
        let crashes = self.shared.loading.crashes.load();
        match crashes.get(fingerprint) {
            Some(count) if *count >= TOO_MANY => Err(Error::Quarantined {
                record: self.shared.folder.load().path().join(record(fingerprint)),
            }),
            _ => Ok(()),
        }
    }
}

impl Loading {
    /// Looks for processes that died while they loaded, and notes it. Gives how many loads ended a
    /// process since the last time somebody looked.
    pub(super) fn examine(folder: &Folder) -> u64 {
        let Ok(journals) = folder.files(JOURNALS) else { return 0 };
        let journals = journals.take(EXAMINE_AT_MOST);
        journals.map(|journal| examine_journal(folder, &journal.name).unwrap_or(0)).sum()
    }

    /// What has been noted.
    pub(super) fn known(folder: &Folder) -> Self {
        let mut crashes = HashMap::new();
        if let Ok(records) = folder.files(CRASHED) {
            for file in records {
                let name = file.name.rsplit('/').next().and_then(|name| name.parse().ok());
                if let Some(fingerprint) = name {
                    crashes.insert(fingerprint, file.length);
                }
            }
        }
        Self { crashes: ArcSwap::from_pointee(crashes), ..Self::default() }
    }

    /// This process's journal, begun if there is none.
    fn journal(&self, store: &ArtifactStore) -> Option<Arc<Journal>> {
        let journal = self.journal.load_full();
        let me = std::process::id();
        if let Some(journal) = journal.clone().filter(|journal| journal.process == me) {
            return Some(journal);
        }
        if store.shared.options.use_only || self.without.load(Relaxed) {
            return None;
        }
        let Some(begun) = Journal::begin(store.shared.folder.load_full()).ok().flatten() else {
            self.without.store(true, Relaxed);
            return None;
        };
        let begun = Arc::new(begun);
        let before = self.journal.compare_and_swap(&journal, Some(Arc::clone(&begun)));
        // Another thread may have been faster: one is enough.
        match &*before {
            Some(other) if other.process == me => Some(Arc::clone(other)),
            _ => Some(begun),
        }
    }
}

impl Journal {
    /// None where there are no locks.
    fn begin(folder: Arc<Folder>) -> io::Result<Option<Self>> {
        folder.make_folder(JOURNALS)?;
        // Locked before it has its name: nobody finds one that is not.
        let unfinished = Temporary::write(&folder, &[0; SLOTS * SLOT])?;
        let file = folder.open_or_create(unfinished.name())?;
        if !lock::whole(&file).unwrap_or(false) {
            return Ok(None);
        }
        let name = format!("{JOURNALS}/{}", super::temporary::unique());
        unfinished.commit(&name)?;
        let process = std::process::id();
        Ok(Some(Self { file, name, folder, process, used: AtomicU64::new(0) }))
    }

    /// Notes a load, if there is a slot for it.
    fn note(&self, fingerprint: &Fingerprint) -> Option<usize> {
        loop {
            let used = self.used.load(Relaxed);
            let slot = used.trailing_ones() as usize;
            if slot >= SLOTS {
                return None;
            }
            let taken = self.used.compare_exchange(used, used | 1 << slot, Relaxed, Relaxed);
            if taken.is_ok() {
                let place = (slot * SLOT) as u64;
                return match at::write(&self.file, fingerprint.as_bytes(), place) {
                    Ok(()) => Some(slot),
                    Err(_) => {
                        self.free(slot);
                        None
                    }
                };
            }
        }
    }

    fn free(&self, slot: usize) {
        self.used.fetch_and(!(1 << slot), Relaxed);
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A forked child leaves its parent's alone.
        if self.process == std::process::id() {
            let _ = self.folder.remove(&self.name);
        }
    }
}

impl Drop for LoadMark {
    fn drop(&mut self) {
        if self.journal.process != std::process::id() {
            return;
        }
        let wiped = at::write(&self.journal.file, &[0; SLOT], (self.slot * SLOT) as u64);
        if wiped.is_ok() {
            self.journal.free(self.slot);
        }
        if let Some((store, fingerprint)) = &self.suspect {
            store.forgive(fingerprint);
        }
    }
}

/// The crashes of the process whose journal this is, if that is dead. It is gone afterwards.
fn examine_journal(folder: &Folder, name: &str) -> io::Result<u64> {
    let file = folder.open_or_create(name)?;
    // Taken: its process is alive. Gone: another has just seen to it.
    if !lock::whole(&file)? || !folder.is_named(&file, name) {
        return Ok(0);
    }
    let mut slots = [0; SLOTS * SLOT];
    let read = at::read(&file, &mut slots, 0);
    // First, so that no crash counts twice if we are killed here.
    folder.remove(name)?;
    read?;
    let mut crashes = 0;
    for slot in slots.chunks_exact(SLOT) {
        let Ok(bytes) = <[u8; SLOT]>::try_from(slot) else { continue };
        if bytes != [0; SLOT] {
            folder.make_folder(CRASHED)?;
            let record = folder.open_or_create(&record(&Fingerprint::from_bytes(bytes)))?;
            at::write(&record, b"x", record.metadata()?.len())?;
            crashes += 1;
        }
    }
    Ok(crashes)
}

/// The file whose length is the number of crashes.
fn record(fingerprint: &Fingerprint) -> String {
    format!("{CRASHED}/{fingerprint}")
}
