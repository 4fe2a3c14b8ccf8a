//! What the threads of a round share: the runtime that some use and others tear down, and what they
//! have counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use grainstore::DeviceId;
use grainstore_runtime::{Backend, Device, Kernel, KernelSpec, Runtime, RuntimeError};

use super::plans::{self, PLANS, Plans};
use super::random::Random;
use crate::Subject;
use crate::gate::{BOUND, Meter};
use crate::memory::Memory;
use crate::stage::{self, absent};
use crate::trouble::{Check, Trouble};
use crate::watched::Watched;

/// Kernels that are asked for, and how many of them fit for each device: a few too few.
pub(super) const KERNELS: u32 = 12;
const CAPACITY: usize = 10;
/// More devices would only do the same.
const DEVICES: usize = 2;
/// Faults that are told in words.
const TOLD: usize = 10;

/// A runtime over the subject's backend, with everything around it.
pub(super) struct Ground<S: Subject> {
    pub(super) subject: Arc<S>,
    pub(super) backend: Arc<Watched<S::Backend>>,
    pub(super) store: Memory,
    pub(super) runtime: Runtime,
    pub(super) plans: Plans,
    pub(super) devices: Vec<DeviceId>,
    specs: Vec<KernelSpec>,
    /// Ticks with every launch.
    pub(super) launched: Meter,
    pub(super) launches: AtomicU64,
    pub(super) teardowns: AtomicU64,
    pub(super) deferred: AtomicU64,
    faults: Arc<Faults>,
}

/// What should not have happened.
#[derive(Default)]
pub(super) struct Faults {
    count: AtomicU64,
    told: Mutex<Vec<String>>,
}

impl Faults {
    pub(super) fn add(&self, what: impl Into<String>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < TOLD {
            told.push(what.into());
        }
    }
}

impl<S: Subject> Ground<S> {
    pub(super) fn new(subject: &Arc<S>, store: &Memory) -> Check<Self> {
        let backend = Arc::new(Watched::new(subject.backend().map_err(absent)?));
        // What is missing is told here, in the backend's words.
        let mut devices: Vec<_> =
            backend.devices().map_err(absent)?.into_iter().map(|device| device.id).collect();
        if devices.is_empty() {
            return Err(Trouble::Absent("the driver is here, but it has no device".into()));
        }
        devices.truncate(DEVICES);
        let faults = Arc::<Faults>::default();
        let warned = Arc::clone(&faults);
        let runtime = Runtime::builder()
            .backend(Arc::clone(&backend))
            .store(store.clone())
            .capacity(CAPACITY * devices.len())
            .drain_bound(BOUND)
            .on_warning(move |warning| warned.add(format!("a warning: {warning}")))
            .build()?;
        let plans = plans::over(&runtime, PLANS * devices.len())?;
        Ok(Self {
            specs: (0..KERNELS).map(|number| subject.kernel(addend(number))).collect(),
            subject: Arc::clone(subject),
            backend,
            store: store.clone(),
            runtime,
            plans,
            devices,
            launched: Meter::default(),
            launches: AtomicU64::new(0),
            teardowns: AtomicU64::new(0),
            deferred: AtomicU64::new(0),
            faults,
        })
    }

    /// A kernel, by its number.
    pub(super) fn spec(&self, number: u32) -> &KernelSpec {
        &self.specs[number as usize % self.specs.len()]
    }

    pub(super) fn any_device(&self, random: &mut Random) -> DeviceId {
        self.devices[random.below(self.devices.len())]
    }

    /// The handle of this device, once it is there: while a teardown holds it, whoever launches has
    /// to wait.
    pub(super) fn open(&self, id: &DeviceId) -> Result<Device, Denied> {
        self.runtime.device(id).map_err(|error| self.denied(error))
    }

    /// Why there was no kernel or device. What no teardown explains is a fault.
    pub(super) fn denied(&self, error: RuntimeError) -> Denied {
        use grainstore::Error::{Cleared, Removed, Superseded};
        match error {
            RuntimeError::ShutDown => Denied::Over,
            RuntimeError::DeviceDestroyed { .. }
            | RuntimeError::DeviceHeld { .. }
            | RuntimeError::TeardownRunning { .. } => Denied::Gone,
            RuntimeError::Busy { .. } => Denied::Busy,
            RuntimeError::Cache(Cleared | Removed | Superseded) => Denied::Doomed,
            error => {
                self.fault(format!("a kernel was refused: {error}"));
                Denied::Doomed
            }
        }
    }

    /// Launches a module and checks every number.
    pub(super) fn launch(&self, kernel: &Kernel, number: u32) {
        type Module<S> = <<S as Subject>::Backend as Backend>::Module;
        let Some(module) = kernel.module::<Module<S>>() else {
            return self.fault("a kernel's module is another backend's");
        };
        if let Err(trouble) = stage::launch(&*self.subject, module, addend(number)) {
            self.fault(trouble.into_text());
        }
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.launched.tick();
    }

    pub(super) fn fault(&self, what: impl Into<String>) {
        self.faults.add(what);
    }

    pub(super) fn faults(&self) -> (u64, Vec<String>) {
        let told = self.faults.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (self.faults.count.load(Ordering::Relaxed), told)
    }
}

/// What a kernel of this number adds.
pub(super) fn addend(number: u32) -> u32 {
    (number % KERNELS + 1).wrapping_mul(0x0101_0101)
}

/// Why somebody got no kernel; a teardown explains all of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// The device is being torn down, or the handle is of an earlier life.
    Gone,
    /// Every place is taken.
    Busy,
    /// The build was doomed by a clear or a removal.
    Doomed,
    /// The runtime is shut down.
    Over,
}
