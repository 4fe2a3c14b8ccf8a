//! The subject's backend behind a counter: what the runtime asks of it, and when.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};

use crate::gate::Gate;

/// A backend that counts its calls and passes them on.
pub(crate) struct Watched<B> {
    backend: B,
    counts: Counts,
    held: Mutex<Option<Arc<Gate>>>,
    over: AtomicBool,
}

#[derive(Default)]
struct Counts {
    builds: AtomicUsize,
    unloads: AtomicUsize,
    /// Modules that were built or loaded.
    made: AtomicUsize,
    late: AtomicUsize,
}

impl<B: Backend> Watched<B> {
    pub(crate) fn new(backend: B) -> Self {
        Self {
            backend,
            counts: Counts::default(),
            held: Mutex::new(None),
            over: AtomicBool::new(false),
        }
    }

    pub(crate) fn inner(&self) -> &B {
        &self.backend
    }

    /// Calls of the compiler, failed ones too.
    pub(crate) fn builds(&self) -> usize {
        self.counts.builds.load(Ordering::SeqCst)
    }

    pub(crate) fn unloads(&self) -> usize {
        self.counts.unloads.load(Ordering::SeqCst)
    }

    /// Modules that are loaded just now.
    pub(crate) fn modules(&self) -> usize {
        self.counts.made.load(Ordering::SeqCst).saturating_sub(self.unloads())
    }

    /// Holds every build back until the gate is opened.
    pub(crate) fn hold_builds(&self) -> Arc<Gate> {
        let gate = Arc::<Gate>::default();
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&gate));
        gate
    }

    /// From now on nobody may call it.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// How many calls came after the end.
    pub(crate) fn late_calls(&self) -> usize {
        self.counts.late.load(Ordering::SeqCst)
    }

    fn enter(&self) -> &B {
        if self.over.load(Ordering::SeqCst) {
            self.counts.late.fetch_add(1, Ordering::SeqCst);
        }
        &self.backend
    }

    fn made<T>(&self, outcome: Result<T, BackendError>) -> Result<T, BackendError> {
        if outcome.is_ok() {
            self.counts.made.fetch_add(1, Ordering::SeqCst);
        }
        outcome
    }
}

impl<B: Backend> Backend for Watched<B> {
    type Module = B::Module;

    fn name(&self) -> &str {
        self.backend.name()
    }

    fn family(&self) -> Family {
        self.backend.family()
    }

    fn languages(&self) -> &[Language] {
        self.backend.languages()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        self.enter().devices()
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        self.enter().target(device)
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        self.enter().toolchain(target)
    }

    fn toolchain_for(&self, target: &Target, spec: &KernelSpec) -> Result<Toolchain, BackendError> {
        self.enter().toolchain_for(target, spec)
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(B::Module, Option<Artifact>), BackendError> {
        self.counts.builds.fetch_add(1, Ordering::SeqCst);
        let gate = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(gate) = gate {
            gate.pass();
        }
        self.made(self.enter().build(device, spec))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<B::Module, BackendError> {
        self.made(self.enter().load(device, spec, artifact))
    }

    fn unload(&self, module: B::Module) -> Result<(), BackendError> {
        self.counts.unloads.fetch_add(1, Ordering::SeqCst);
        self.enter().unload(module)
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        self.enter().destroy_device(device)
    }

    fn forget_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        self.enter().forget_device(device)
    }

    fn compiles_ahead(&self) -> bool {
        self.enter().compiles_ahead()
    }

    fn compile_for(&self, target: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        self.enter().compile_for(target, spec)
    }
}
