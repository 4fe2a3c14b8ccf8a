//! One job done: a kernel from the store or the compiler.

use std::time::{Duration, Instant};

use grainstore_runtime::{Origin, Runtime};

use super::ask::bare;
use super::plan::Job;
use super::report::{Outcome, Row};
use crate::output::millis;

/// Does the job. The kernel is loaded too, so that what is in the store is known to be good.
pub(super) fn make(runtime: &Runtime, job: &Job) -> Row {
    let began = Instant::now();
    let made = runtime.kernel_with_outcome(&job.device, &job.spec);
    let fingerprint =
        runtime.key(&job.device, &job.spec).ok().map(|key| key.fingerprint().to_string());
    let (outcome, elapsed, compile_time, error) = match made {
        Ok((_, made)) => {
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
        device: job.device.id().to_string(),
        variant: job.variant.to_string(),
        outcome,
        ms: millis(elapsed),
        fingerprint,
        error,
        compile_time,
    }
}
