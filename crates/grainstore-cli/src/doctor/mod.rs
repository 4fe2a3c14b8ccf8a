//! `grainstore doctor`: what this machine has, and whether it works.

mod examine;
#[cfg(feature = "cuda")]
mod launch_cuda;
mod launch_host;
mod launch_opencl;
#[cfg(feature = "vulkan")]
mod launch_vulkan;
#[cfg(feature = "wgpu")]
mod launch_wgpu;
mod report;
mod store;

use crate::args;
use crate::backends::Backends;
use crate::exit::{Exit, Failure};
use crate::output::{print, print_json};
pub(crate) use examine::{Launch, examine};
pub(crate) use report::BackendReport;
use report::Report;

/// Examines everything and tells it.
///
/// What is not installed is no error as long as one backend is there: the exit code then says
/// whether all that is there works.
pub(crate) fn run(arguments: &args::Doctor) -> Result<Exit, Failure> {
    let report = Report {
        backends: Backends::new().examine(),
        store: store::examine(&arguments.store),
        remote: None,
    };
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(match (report.usable(), report.broken()) {
        (false, _) => Exit::Environment,
        (true, true) => Exit::SomeFailed,
        (true, false) => Exit::Ok,
    })
}
