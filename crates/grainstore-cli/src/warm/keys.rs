//! The keys that a manifest asks for, for those who compare them with what is there.

use std::path::Path;

use grainstore::KernelKey;

use super::make::key;
use super::places::{bare, devices};
use super::plan::Plan;
use super::{read, tell_skipped};
use crate::backends::Backends;
use crate::exit::Failure;
use crate::output;

/// What one variant of a kernel is kept under, on one device.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) backend: String,
    pub(crate) device: String,
    pub(crate) variant: String,
    pub(crate) key: KernelKey,
}

/// The keys of the kernel of that name: none if the manifest has no such kernel.
pub(crate) fn wanted(manifest: Option<&Path>, kernel: &str) -> Result<Vec<Wanted>, Failure> {
    let backends = Backends::new();
    let known = backends.known();
    let mut manifest = read(manifest, &known)?;
    manifest.kernels.retain(|known| known.name == kernel);
    if manifest.kernels.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = backends.runtime().build().map_err(Failure::environment)?;
    let asked = devices(&runtime, &manifest, &known.iter().collect::<Vec<_>>());
    let plan = Plan::new(&manifest, &asked, true).map_err(Failure::usage)?;
    tell_skipped(&plan.skipped);
    let mut wanted = Vec::new();
    for job in &plan.jobs {
        match key(&runtime, job) {
            Ok(key) => wanted.push(Wanted {
                backend: job.backend.to_string(),
                device: job.place.to_string(),
                variant: job.variant.to_string(),
                key,
            }),
            Err(error) => output::warn(format!("{} has no key: {}", job.kernel, bare(&error))),
        }
    }
    if let Err(error) = runtime.shutdown() {
        output::warn(&error);
    }
    Ok(wanted)
}
