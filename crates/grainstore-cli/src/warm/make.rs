//! One job done: a kernel from the store or the compiler.

use std::time::{Duration, Instant};

use grainstore::KernelKey;
use grainstore_runtime::{Origin, Runtime, RuntimeError};

use super::places::bare;
use super::plan::{Job, Place};
use super::report::{Outcome, Row};
use crate::output::millis;

/// Does the job. On a device the kernel is loaded too, so that what is in the store is known to be
/// good.
pub(super) fn make(runtime: &Runtime, job: &Job) -> Row {
    let began = Instant::now();
    let made = match &job.place {
        Place::Device(device) => {
            runtime.kernel_with_outcome(device, &job.spec).map(|(_, outcome)| outcome)
        }
        Place::Target(cache, target) => {
            cache.compile_for(target, &job.spec).map(|(_, outcome)| outcome)
        }
    };
    let fingerprint = key(runtime, job).ok().map(|key| key.fingerprint().to_string());
    let (outcome, elapsed, compile_time, error) = match made {
        Ok(made) => {
            let outcome = match &made.origin {
                Origin::Compiled => Outcome::Compiled,
                Origin::Store(name) if &**name == "disk" => Outcome::Disk,
                Origin::Store(_) => Outcome::Remote,
                _ => Outcome::Memory,
            };
            (outcome, made.elapsed, made.compile_time.unwrap_or_default(), None)
        }
        Err(error) => (Outcome::Failed, began.elapsed(), Duration::ZERO, Some(bare(&error))),
    };
    Row {
        name: job.kernel.to_string(),
        backend: job.backend.to_string(),
        device: job.place.to_string(),
        variant: job.variant.to_string(),
        outcome,
        ms: millis(elapsed),
        fingerprint,
        error,
        compile_time,
    }
}

/// What the job's kernel is kept under.
pub(super) fn key(runtime: &Runtime, job: &Job) -> Result<KernelKey, RuntimeError> {
    match &job.place {
        Place::Device(device) => runtime.key(device, &job.spec).cloned(),
        Place::Target(cache, target) => cache.key_for(target, &job.spec),
    }
}
