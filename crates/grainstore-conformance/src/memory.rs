//! The battery's own store: in memory, and in a folder where another process has to find it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore::KernelKey;
use grainstore_runtime::{Artifact, BuildFacts, Member, Store, StoreError};

/// Artifacts by the text of their fingerprint. Clones are the same store.
///
/// It verifies nothing: what is planted here meets the backend as it is.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    kept: HashMap<String, Artifact>,
    discarded: usize,
}

impl Memory {
    pub(crate) fn artifact(&self, key: &KernelKey) -> Option<Artifact> {
        self.lock().kept.get(&name(key)).cloned()
    }

    pub(crate) fn plant(&self, key: &KernelKey, artifact: Artifact) {
        self.lock().kept.insert(name(key), artifact);
    }

    pub(crate) fn forget_all(&self) {
        self.lock().kept.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().kept.len()
    }

    /// How often the runtime was told that an artifact is no good.
    pub(crate) fn discarded(&self) -> usize {
        self.lock().discarded
    }

    /// Writes everything into a folder: a folder for each artifact, a file for each member.
    pub(crate) fn write_to(&self, folder: &Path) -> io::Result<()> {
        for (name, artifact) in &self.lock().kept {
            let folder = folder.join(name);
            fs::create_dir(&folder)?;
            for (at, member) in artifact.members().iter().enumerate() {
                // The order is part of the artifact.
                fs::write(folder.join(format!("{at:04} {}", member.name)), &member.bytes)?;
            }
        }
        Ok(())
    }

    /// Reads what [`write_to`](Self::write_to) wrote.
    pub(crate) fn read_from(folder: &Path) -> io::Result<Self> {
        let store = Self::default();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let mut files: Vec<_> = fs::read_dir(entry.path())?
                .map(|file| Ok(file?.path()))
                .collect::<io::Result<_>>()?;
            files.sort();
            let mut members = Vec::new();
            for file in files {
                let file_name = file.file_name().unwrap_or_default().to_string_lossy();
                let name = file_name.split_once(' ').unwrap_or_default().1.to_owned();
                members.push(Member { name, bytes: fs::read(&file)?.into() });
            }
            if let Some(artifact) = of_members(members) {
                store
                    .lock()
                    .kept
                    .insert(entry.file_name().to_string_lossy().into_owned(), artifact);
            }
        }
        Ok(store)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(key: &KernelKey) -> String {
    key.fingerprint().to_string()
}

/// The artifact of these members, if there is one.
pub(crate) fn of_members(members: Vec<Member>) -> Option<Artifact> {
    let mut members = members.into_iter();
    let first = members.next()?;
    Some(members.fold(Artifact::new(first.name, first.bytes), |artifact, member| {
        artifact.with_member(member.name, member.bytes)
    }))
}

impl Store for Memory {
    fn name(&self) -> &str {
        "the battery's store"
    }

    fn get(&self, key: &KernelKey) -> Result<Option<Artifact>, StoreError> {
        Ok(self.artifact(key))
    }

    fn put(&self, key: &KernelKey, artifact: &Artifact, _: &BuildFacts) -> Result<(), StoreError> {
        self.plant(key, artifact.clone());
        Ok(())
    }

    fn discard(&self, key: &KernelKey) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.discarded += 1;
        state.kept.remove(&name(key));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let key = KernelKey::builder("add").source("s").build().unwrap();
        let store = Memory::default();
        let artifact =
            Artifact::new("b", vec![1]).with_member("a", vec![2]).with_member("c", vec![]);
        store.plant(&key, artifact.clone());
        let folder = tempfile::tempdir().unwrap();
        store.write_to(folder.path()).unwrap();
        let read = Memory::read_from(folder.path()).unwrap();
        assert_eq!((read.len(), read.artifact(&key)), (1, Some(artifact)));
    }
}
