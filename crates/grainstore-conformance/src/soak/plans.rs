//! Plans over kernels, as an application keeps them: a plan whose work the device has not done yet is
//! not idle, so nobody may release it or the kernels it holds.
//!
//! Whoever launches a plan lets go of its pin at once and leaves the work to others, who reach the
//! plan through nothing that would keep it alive. That it is there all the same is what `idle`
//! promises.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use grainstore::Pinned;
use grainstore_runtime::{Device, Kernel, Runtime, RuntimeError};

use super::ground::{Denied, Ground};
use crate::Subject;

/// Plans for each device, of as many as there are kernels.
pub(super) const PLANS: usize = 3;

/// Plans by the number of their first kernel.
pub(super) type Plans = grainstore_runtime::Plans<Plan, u32>;

/// Two kernels that are launched one after the other.
pub(super) struct Plan {
    kernels: Arc<[(Kernel, u32); 2]>,
    unfinished: Arc<AtomicUsize>,
}

/// Work of a plan that the device has yet to do.
pub(super) struct Work {
    plan: Weak<[(Kernel, u32); 2]>,
    unfinished: Arc<AtomicUsize>,
}

/// A cache of plans over this runtime.
pub(super) fn over(runtime: &Runtime, capacity: usize) -> Result<Plans, RuntimeError> {
    // Acquire: whoever releases the plan comes after everything that its work did.
    runtime.plans_by(capacity, |plan: &Plan| plan.unfinished.load(Ordering::Acquire) == 0)
}

impl Plan {
    fn new<S: Subject>(
        ground: &Ground<S>,
        device: &Device,
        number: u32,
    ) -> Result<Self, RuntimeError> {
        let kernel = |number| {
            ground.runtime.kernel(device, ground.spec(number)).map(|kernel| (kernel, number))
        };
        let kernels = [kernel(number)?, kernel(number + 1)?];
        Ok(Self { kernels: Arc::new(kernels), unfinished: Arc::default() })
    }

    /// The plan of this number.
    pub(super) fn get<S: Subject>(
        ground: &Ground<S>,
        device: &Device,
        number: u32,
    ) -> Result<Pinned<Self>, Denied> {
        ground
            .plans
            .on(&device.id())
            .get_or_build(&number, || Self::new(ground, device, number))
            .map_err(|error| ground.denied(error.into()))
    }

    /// Begins a launch. The plan is pinned, so nobody asks whether it is idle until its work counts.
    pub(super) fn begin(plan: &Pinned<Self>) -> Work {
        plan.unfinished.fetch_add(1, Ordering::Relaxed);
        Work { plan: Arc::downgrade(&plan.kernels), unfinished: Arc::clone(&plan.unfinished) }
    }
}

impl Work {
    /// Does it, as a device would some time later.
    pub(super) fn finish<S: Subject>(self, ground: &Ground<S>) {
        match self.plan.upgrade() {
            Some(kernels) => kernels.iter().for_each(|(kernel, number)| {
                ground.launch(kernel, *number);
            }),
            None => ground.fault("a plan was released before its work was done"),
        }
        // Release: see `over`.
        self.unfinished.fetch_sub(1, Ordering::Release);
        // Nothing else would tell a plan that was retired meanwhile.
        ground.plans.reap();
    }
}
