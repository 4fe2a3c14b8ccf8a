//! The walk of a miss: each store in order, then the compiler, and back up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore::KernelKey;

use super::BackendCache;
use crate::activity::Gate;
use crate::stores::{Found, Shelf};
use crate::{
    Artifact, Backend, BackendError, BuildFacts, Device, Guard, KernelSpec, Loaded, Origin,
    RuntimeError, Warning,
};

/// What a walk has to tell: where the kernel came from, and how long the compiler took.
pub(super) type Trace = (Origin, Option<Duration>);

/// A module from a store.
type FromStore<B> = (Loaded<<B as Backend>::Module>, Origin);

/// What a store could do with the artifact once there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    /// It has none, or one that is no good, or was not asked.
    Artifact,
    /// It has it, or does not work just now.
    Nothing,
}

impl<B: Backend> BackendCache<B> {
    /// The build that all callers of this key share. It runs under no lock.
    pub(super) fn obtain(
        &self,
        device: &Device,
        key: &KernelKey,
        spec: &KernelSpec,
        trace: &mut Option<Trace>,
    ) -> Result<Loaded<B::Module>, RuntimeError> {
        let door = &self.inner.door;
        let _inside = door.enter(Gate::Open, || format!("{} on {}", spec.name(), device.id()))?;
        // The build is under way as the cache sees it, so a teardown that begins after this check
        // dooms it.
        self.check_live(device)?;

        let shelves = &self.inner.settings.shelves;
        let mut wants = vec![Want::Artifact; shelves.len()];
        // Held until what is built or found farther away has been put.
        let mut leases = Vec::new();
        if let Some((module, origin)) = self.load(device, key, spec, &mut wants, &mut leases)? {
            *trace = Some((origin, None));
            return Ok(module);
        }
        let began = Instant::now();
        let (module, artifact) = door
            .backend
            .build(&device.id(), spec)
            .map_err(|error| door.error(Some(spec.name()), error))?;
        let took = began.elapsed();
        *trace = Some((Origin::Compiled, Some(took)));
        let loaded = Loaded::new(module, Arc::clone(device.life()));
        if let Some(artifact) = artifact
            && took >= self.inner.settings.persist_over
        {
            self.put(key, &artifact, &BuildFacts::took(took), shelves, &wants);
        }
        Ok(loaded)
    }

    /// The kernel from the nearest store that has it, put into the nearer ones on the way back.
    fn load(
        &self,
        device: &Device,
        key: &KernelKey,
        spec: &KernelSpec,
        wants: &mut [Want],
        leases: &mut Vec<Guard>,
    ) -> Result<Option<FromStore<B>>, RuntimeError> {
        let door = &self.inner.door;
        let shelves = &self.inner.settings.shelves;
        let warnings = &self.inner.settings.warnings;
        let bound = self.inner.settings.wait_for_others;
        for (at, shelf) in shelves.iter().enumerate() {
            let artifact = match shelf.get(key, bound, warnings) {
                Found::Artifact(artifact) => artifact,
                Found::Nothing(lease) => {
                    leases.extend(lease);
                    continue;
                }
                Found::Withheld => return Ok(None),
                Found::Failed => {
                    wants[at] = Want::Nothing;
                    continue;
                }
            };
            let loading = shelf.loading(key, warnings);
            let outcome = door.backend.load(&device.id(), spec, &artifact);
            drop(loading);
            match outcome {
                Ok(module) => {
                    let loaded = Loaded::new(module, Arc::clone(device.life()));
                    let facts = BuildFacts::default();
                    self.put(key, &artifact, &facts, &shelves[..at], wants);
                    return Ok(Some((loaded, Origin::Store(Arc::clone(shelf.name())))));
                }
                Err(BackendError::InvalidArtifact { reason }) => {
                    shelf.discard(key, warnings);
                    warnings.tell(&Warning::InvalidArtifact {
                        store: shelf.name(),
                        kernel: spec.name(),
                        reason: &reason,
                    });
                }
                Err(error) if !worth_a_build(&error) => {
                    return Err(door.error(Some(spec.name()), error));
                }
                Err(error) => {
                    wants[at] = Want::Nothing;
                    warnings.tell(&Warning::LoadFailed {
                        store: shelf.name(),
                        kernel: spec.name(),
                        reason: &error.to_string(),
                    });
                }
            }
            // Farther stores got theirs from the same compiler under the same key.
            return Ok(None);
        }
        Ok(None)
    }

    fn put(
        &self,
        key: &KernelKey,
        artifact: &Artifact,
        facts: &BuildFacts,
        shelves: &[Arc<Shelf>],
        wants: &[Want],
    ) {
        for (shelf, want) in shelves.iter().zip(wants) {
            if *want == Want::Artifact {
                shelf.put(key, artifact, facts, &self.inner.settings.warnings);
            }
        }
    }
}

/// Whether a build could succeed where a load has failed like this.
fn worth_a_build(error: &BackendError) -> bool {
    !matches!(
        error,
        BackendError::DeviceLost { .. }
            | BackendError::NoDevice { .. }
            | BackendError::Missing { .. }
    )
}
