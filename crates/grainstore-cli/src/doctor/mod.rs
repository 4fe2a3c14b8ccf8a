//! `grainstore doctor`: what this machine has, and whether it works.

mod examine;
#[cfg(feature = "cuda")]
#[expect(unsafe_code, reason = "it loads the driver and calls it with raw addresses")]
mod launch_cuda;
#[expect(unsafe_code, reason = "it calls a function of a shared object that was just compiled")]
mod launch_host;
#[expect(unsafe_code, reason = "a launch reads and writes memory that OpenCL can't check")]
mod launch_opencl;
#[cfg(feature = "vulkan")]
#[expect(unsafe_code, reason = "all of Vulkan's calls are the caller's to get right")]
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
pub(crate) fn run(arguments: &args::Common) -> Result<Exit, Failure> {
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
