//! Compiling ahead of time, for a machine that need not be this one: no device, and nothing loaded.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use grainstore::KernelKey;

use super::BackendCache;
use crate::activity::Gate;
use crate::profile::Profile;
use crate::stores::Found;
use crate::{
    Artifact, Backend, BuildFacts, KernelSpec, Origin, Outcome, RuntimeError, Target, Toolchain,
};

impl<B: Backend> BackendCache<B> {
    /// Whether this backend compiles with no device. For which targets it does,
    /// [`toolchain_for`](Self::toolchain_for) tells.
    #[must_use]
    pub fn compiles_ahead(&self) -> bool {
        self.inner.door.backend.compiles_ahead()
    }

    /// This kernel's artifact for a target that need not be here: from a store, or compiled and put
    /// into every store. Nothing is loaded, and nothing is kept in memory. A machine of that target
    /// with the same toolchain finds it under the same key.
    ///
    /// Blocks while the compiler works, or while another process makes the same artifact.
    ///
    /// # Errors
    /// [`RuntimeError::Backend`] with what the compiler said, or that this backend can't compile
    /// without a device.
    pub fn compile_for(
        &self,
        target: &Target,
        spec: &KernelSpec,
    ) -> Result<(Artifact, Outcome), RuntimeError> {
        let began = Instant::now();
        let key = &self.key_for(target, spec)?;
        let door = &self.inner.door;
        let what = || format!("{} for {}", spec.name(), target.as_str());
        let _inside = door.enter(Gate::Open, what)?;
        let settings = &self.inner.settings;
        // Stores that were asked in vain, and those that failed left out; with what has others wait.
        let mut want = Vec::new();
        let mut leases = Vec::new();
        let mut found = None;
        for (at, shelf) in settings.shelves.iter().enumerate() {
            match shelf.get(key, settings.wait_for_others, &settings.warnings) {
                Found::Artifact(artifact) => {
                    found = Some((artifact, Arc::clone(shelf.name())));
                    break;
                }
                Found::Nothing(lease) => {
                    want.push(shelf);
                    leases.extend(lease);
                }
                Found::Withheld => {
                    // Those behind got theirs from the same compiler, and are given it anew.
                    want.extend(&settings.shelves[at..]);
                    break;
                }
                Found::Failed => {}
            }
        }
        let (artifact, origin, facts) = match found {
            Some((artifact, store)) => (artifact, Origin::Store(store), BuildFacts::default()),
            None => {
                let began = Instant::now();
                let compile = || door.backend.compile_for(target, spec);
                let artifact = catch_unwind(AssertUnwindSafe(compile))
                    .map_err(|payload| panicked(&*payload))?
                    .map_err(|error| door.error(Some(spec.name()), error))?;
                (artifact, Origin::Compiled, BuildFacts::took(began.elapsed()))
            }
        };
        for shelf in want {
            shelf.put(key, &artifact, &facts, &settings.warnings);
        }
        let compile_time = facts.compile_time;
        Ok((artifact, Outcome { origin, elapsed: began.elapsed(), compile_time }))
    }

    /// The key of this kernel on machines of this target: what the stores know it by there.
    ///
    /// # Errors
    /// As [`toolchain_for`](Self::toolchain_for).
    pub fn key_for(&self, target: &Target, spec: &KernelSpec) -> Result<KernelKey, RuntimeError> {
        let toolchain = self.toolchain_for(target)?;
        let profile = Profile::of(&self.inner.door.name, target.clone(), toolchain);
        spec.key(&profile, || self.spec_toolchain(&profile, spec)).cloned()
    }

    /// Who makes code for this target, which need not be here.
    ///
    /// # Errors
    /// [`RuntimeError::Backend`] when there is no such target for this backend, or its compiler is
    /// not here.
    pub fn toolchain_for(&self, target: &Target) -> Result<Toolchain, RuntimeError> {
        let door = &self.inner.door;
        let what = || format!("reading the toolchain of {}", door.name);
        let _inside = door.enter(Gate::Open, what)?;
        door.backend.toolchain(target).map_err(|error| door.error(None, error))
    }
}

/// As the cache has it for builds.
fn panicked(payload: &(dyn Any + Send)) -> RuntimeError {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "a panic without a message".into());
    grainstore::Error::Panicked { message }.into()
}
