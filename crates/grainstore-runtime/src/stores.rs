//! The stores in order, nearest first, as the walk sees them: they may fail, and nobody is hurt.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use grainstore::KernelKey;

use crate::warning::Warnings;
use crate::{Artifact, BuildFacts, Guard, LookUp, Store, StoreError, Warning};

/// One store, and whether its first failure was told.
pub(crate) struct Shelf {
    store: Box<dyn Store>,
    name: Arc<str>,
    warned: AtomicBool,
}

/// What a store has for a key.
pub(crate) enum Found {
    Artifact(Artifact),
    /// Nothing; while the lease is held, others wait for this request.
    Nothing(Option<Guard>),
    /// An artifact that it won't hand out.
    Withheld,
    /// It failed, and is not asked again on behalf of this request.
    Failed,
}

impl Shelf {
    pub(crate) fn new(store: Box<dyn Store>) -> Self {
        let name = Arc::from(store.name());
        Self { store, name, warned: AtomicBool::new(false) }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Waits at most for `bound` for another process that is making it.
    pub(crate) fn get(&self, key: &KernelKey, bound: Duration, warnings: &Warnings) -> Found {
        let looked = self.attempt(warnings, |store| match store.get_or_lease(key, bound) {
            Ok(LookUp::Found(artifact)) => Ok(Found::Artifact(artifact)),
            Ok(LookUp::Missing(lease)) => Ok(Found::Nothing(lease)),
            Err(error) if error.withholds() => {
                let (store, kernel) = (&*self.name, key.name());
                warnings.tell(&Warning::Withheld { store, kernel, error: &error });
                Ok(Found::Withheld)
            }
            Err(error) => Err(error),
        });
        looked.unwrap_or(Found::Failed)
    }

    /// What tells the store that a loader is at work on this key's artifact.
    pub(crate) fn loading(&self, key: &KernelKey, warnings: &Warnings) -> Option<Guard> {
        self.attempt(warnings, |store| Ok(store.loading(key))).flatten()
    }

    pub(crate) fn put(
        &self,
        key: &KernelKey,
        artifact: &Artifact,
        facts: &BuildFacts,
        warnings: &Warnings,
    ) {
        self.attempt(warnings, |store| store.put(key, artifact, facts));
    }

    pub(crate) fn discard(&self, key: &KernelKey, warnings: &Warnings) {
        self.attempt(warnings, |store| store.discard(key));
    }

    /// A store that panics is a store that fails.
    fn attempt<T>(
        &self,
        warnings: &Warnings,
        call: impl FnOnce(&dyn Store) -> Result<T, StoreError>,
    ) -> Option<T> {
        let outcome = catch_unwind(AssertUnwindSafe(|| call(&*self.store)))
            .unwrap_or_else(|_| Err(StoreError::new("it panicked")));
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    warnings.tell(&Warning::Store { store: &self.name, error: &error });
                }
                None
            }
        }
    }
}
