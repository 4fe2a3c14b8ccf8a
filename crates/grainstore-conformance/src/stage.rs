//! What every check begins with: a backend of its own, a cache before it, and a device.

use std::sync::Arc;

use grainstore::{Family, KernelKey, Pinned};
use grainstore_runtime::{
    Backend, BackendCache, BackendError, Device, KernelSpec, Loaded, RuntimeError, Settings,
};

use crate::Subject;
use crate::gate::BOUND;
use crate::memory::Memory;
use crate::trouble::{Check, Trouble, ensure};
use crate::watched::Watched;

/// A pinned module of the subject's backend.
pub(crate) type Module<S> = Pinned<Loaded<<<S as Subject>::Backend as Backend>::Module>>;

/// The cache under test.
pub(crate) type Cache<S> = BackendCache<Arc<Watched<<S as Subject>::Backend>>>;

/// A cache with everything around it.
pub(crate) struct Stage<'s, S: Subject> {
    pub(crate) subject: &'s S,
    pub(crate) backend: Arc<Watched<S::Backend>>,
    pub(crate) store: Memory,
    pub(crate) cache: Cache<S>,
    pub(crate) device: Device,
}

impl<'s, S: Subject> Stage<'s, S> {
    pub(crate) fn new(subject: &'s S) -> Check<Self> {
        Self::with_store(subject, Memory::default())
    }

    pub(crate) fn with_store(subject: &'s S, store: Memory) -> Check<Self> {
        let backend = Arc::new(Watched::new(subject.backend().map_err(absent)?));
        let devices = backend.devices().map_err(absent)?;
        ensure!(
            backend.name() == subject.name(),
            "the backend is named `{}`, the subject `{}`",
            backend.name(),
            subject.name()
        );
        let Some(first) = devices.first() else {
            return Err(Trouble::Absent("the driver is here, but it has no device".into()));
        };
        let settings = Settings::new().store(store.clone()).drain_bound(BOUND);
        let cache = BackendCache::new(Arc::clone(&backend), settings)?;
        let device = cache.device(&first.id)?;
        Ok(Self { subject, backend, store, cache, device })
    }

    pub(crate) fn family(&self) -> Family {
        self.backend.family()
    }

    pub(crate) fn kernel(&self, spec: &KernelSpec) -> Result<Module<S>, RuntimeError> {
        self.cache.kernel(&self.device, spec)
    }

    pub(crate) fn key<'a>(&self, spec: &'a KernelSpec) -> Check<&'a KernelKey> {
        Ok(self.cache.key(&self.device, spec)?)
    }

    /// Asks for the kernel and launches it.
    pub(crate) fn check(&self, spec: &KernelSpec, add: u32) -> Check {
        launch(self.subject, &*self.kernel(spec)?, add)
    }

    pub(crate) fn handles(&self) -> usize {
        self.subject.live_handles(self.backend.inner())
    }

    /// Builds the kernel, and says whether that left an artifact in the store. A backend that leaves
    /// none has to say why.
    pub(crate) fn require_artifact(&self, spec: &KernelSpec) -> Check {
        drop(self.kernel(spec)?);
        if !self.has_artifact(spec)? {
            self.subject.artifact(self.backend.inner())?;
            return Err(Trouble::failed(
                "a build left no artifact, and the subject says no reason",
            ));
        }
        Ok(())
    }

    /// Whether the build of this kernel has left an artifact.
    pub(crate) fn has_artifact(&self, spec: &KernelSpec) -> Check<bool> {
        Ok(self.store.artifact(self.key(spec)?).is_some())
    }

    /// Takes all kernels out of memory, and waits until they are released.
    pub(crate) fn clear(&self) -> Check {
        let drain = self.cache.clear()?;
        ensure!(drain.wait_timeout(BOUND), "a cleared cache is not drained after {BOUND:?}");
        match drain.errors().into_iter().next() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// The ordinary end: everything is let go.
    pub(crate) fn finish(self) -> Check {
        self.cache.shutdown().map_err(|error| Trouble::from(error).at("at the shutdown"))?;
        ensure!(
            self.backend.modules() == 0,
            "{} modules are still loaded after the shutdown",
            self.backend.modules()
        );
        Ok(())
    }
}

/// Numbers for a launch: not a round count, and with some that wrap around.
const COUNT: u32 = 1000;

/// Launches the module and checks every number.
pub(crate) fn launch<S: Subject>(
    subject: &S,
    module: &<S::Backend as Backend>::Module,
    add: u32,
) -> Check {
    let input: Vec<u32> = (0..COUNT).map(|at| at.wrapping_mul(0x9e37_79b9)).collect();
    let output = subject.launch(module, &input).map_err(|error| Trouble::launch(&error))?;
    ensure!(
        output.len() == input.len(),
        "a launch over {} numbers gave {}",
        input.len(),
        output.len()
    );
    for (at, (got, number)) in output.iter().zip(&input).enumerate() {
        let want = number.wrapping_add(add);
        ensure!(
            *got == want,
            "a wrong result: number {at} is {got}, and should be {number} + {add}"
        );
    }
    Ok(())
}

/// A driver that is not here is no fault of the backend's.
pub(crate) fn absent(error: BackendError) -> Trouble {
    match error {
        BackendError::Missing { .. } => Trouble::Absent(error.to_string()),
        error => error.into(),
    }
}
