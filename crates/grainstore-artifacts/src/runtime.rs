//! The store behind the runtime's `Store` trait.

use std::time::Duration;

use grainstore::KernelKey;
use grainstore_runtime::{Artifact, BuildFacts, Guard, Store, StoreError};

use crate::{ArtifactStore, Error, Group, LookUp};

impl Store for ArtifactStore {
    fn name(&self) -> &str {
        "disk"
    }

    fn get(&self, key: &KernelKey) -> Result<Option<Artifact>, StoreError> {
        Ok(ArtifactStore::get(self, key)?.and_then(|group| artifact(&group)))
    }

    fn get_or_lease(
        &self,
        key: &KernelKey,
        bound: Duration,
    ) -> Result<grainstore_runtime::LookUp, StoreError> {
        use grainstore_runtime::LookUp as Found;
        Ok(match self.lookup_or_lease(key, bound)? {
            LookUp::Hit(group) => artifact(&group).map_or(Found::Missing(None), Found::Found),
            LookUp::Lease(lease) => Found::Missing(Some(Guard::new(lease))),
        })
    }

    fn loading(&self, key: &KernelKey) -> Option<Guard> {
        ArtifactStore::loading(self, key).map(Guard::new)
    }

    fn put(
        &self,
        key: &KernelKey,
        artifact: &Artifact,
        facts: &BuildFacts,
    ) -> Result<(), StoreError> {
        if self.check_quarantine(&key.fingerprint()).is_err() {
            // The same compiler made it from the same source: it would be withheld as well.
            return Ok(());
        }
        match ArtifactStore::put(self, key, &group(key, artifact, facts)) {
            // Whoever opened it so knows that nothing is kept.
            Err(Error::UseOnly) => Ok(()),
            put => Ok(put?),
        }
    }

    fn discard(&self, key: &KernelKey) -> Result<(), StoreError> {
        match self.remove(key) {
            Err(Error::UseOnly) => Ok(()),
            removed => Ok(removed.map(drop)?),
        }
    }
}

fn artifact(group: &Group) -> Option<Artifact> {
    let (first, others) = group.members().split_first()?;
    let binary = Artifact::new(&first.name, first.bytes.clone());
    let artifact = others
        .iter()
        .fold(binary, |artifact, member| artifact.with_member(&member.name, member.bytes.clone()));
    // A file is handed out only once the digest over all of it was right.
    Some(artifact.verified())
}

fn group(key: &KernelKey, artifact: &Artifact, facts: &BuildFacts) -> Group {
    let group = artifact.members().iter().fold(Group::default(), |group, member| {
        group.with_member(&member.name, member.bytes.clone())
    });
    let group = group.with_toolchain(key.toolchain());
    match facts.compile_time {
        Some(time) => group.with_compile_time(time),
        None => group,
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let withholds = match &error {
            Error::Quarantined { .. } => true,
            // A file that others could have changed; the folder is judged first, and before it.
            Error::Untrusted { path, .. } => path.extension().is_some_and(|end| end == "grain"),
            _ => false,
        };
        let error = Self::with_source(error.to_string(), error);
        if withholds { error.withholding() } else { error }
    }
}
