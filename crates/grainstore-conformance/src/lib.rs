//! One battery of tests for every backend, ours and other people's, run with a single call.
//!
//! A [`Backend`](grainstore_runtime::Backend) promises a few things that no type can hold it to:
//! that a broken artifact is refused, that an option is not forgotten, that a module keeps its
//! context alive, that nothing is left behind. The battery holds it to them, on the real driver,
//! through the same [`BackendCache`](grainstore_runtime::BackendCache) that its users have.
//!
//! # Use
//! The backend's author implements [`Subject`]: how to make the backend, a kernel that adds a number,
//! how to launch it, how many native handles there are. Then a test target without a harness of its
//! own
//!
//! ```toml
//! [[test]]
//! name = "conformance"
//! harness = false
//! ```
//!
//! whose `main` is one call: [`main`]. Each check is one test there, under `cargo test` and under
//! nextest, and can be chosen by its name. A program that wants the outcome as values calls [`run`].
//!
//! `examples/stranger.rs` is a whole backend of somebody else's with its subject, and passes.
//!
//! # What is checked
//! - **Identity**: devices, target, toolchain and key are the same each time they are asked for, and
//!   in each process; an unknown device is an error.
//! - **Compiling**: build, launch, the right numbers; a wrong source gives the compiler's log, the
//!   same each time, and leaves nothing in memory or in a store; an entry point that is not there; a
//!   define, a header, an option and a specialization constant that make two kernels of one source;
//!   compiling with no device.
//! - **Artifacts**: loaded again, also by a new process that compiles nothing; foreign, cut, flipped
//!   and empty ones are refused as
//!   [`InvalidArtifact`](grainstore_runtime::BackendError::InvalidArtifact), without harm to the
//!   process, and dropped and built anew.
//! - **Threads**: eight threads that ask for one kernel make one build; many kernels are built and
//!   launched at once.
//! - **Teardown**: launches go on, with the right numbers, while the kernels are cleared or removed,
//!   or their device is evicted or destroyed; a pinned module stays good and is released after; a
//!   device is made again, and a handle of its earlier life refused; a device that is lost or given
//!   up; a shutdown, twice, after which nobody calls the driver.
//! - **Handles**: none is left at the end.
//! - **Exit**: with modules still pinned, after a shutdown, with cache, backend and kernels dropped
//!   in any order, a process ends with status 0.
//! - **A missing library** is an error that names it.
//!
//! # The soak
//! With the variable `GRAINSTORE_SOAK_SECONDS` set, [`main`] goes on for that long instead: launches
//! whose every number is checked, while everything under them is cleared, evicted, destroyed and made
//! again. `GRAINSTORE_SOAK_SEED` chooses what its threads do. Ctrl-C ends it early, with its figures.
//! [`soak`](fn@soak) gives them as values.
//!
//! # What is not run
//! A check that needs what a backend can't do, or a driver that is not here, passes, and says so on
//! standard error: `not run: NAME: REASON`. Where the variable `GRAINSTORE_REQUIRE` (names of
//! backends, with commas between) holds the backend's name, a missing driver is a failure.
//!
//! # New processes
//! Some checks start the running executable again, with the same arguments. So [`main`] or [`run`]
//! has to be the first thing that its `main` does: what comes before it is done in each of these
//! processes.

//! # Other tests and benches
//! What a backend tests beside the battery, of its own API, has the same needs: a process of its own,
//! and a word where the driver is not here. [`testing`] has them.
//! [`mod@bench`] is for what only new processes show.

mod again;
mod battery;
pub mod bench;
mod checks;
mod gate;
mod memory;
mod report;
mod soak;
mod stage;
mod subject;
pub mod testing;
mod trouble;
mod watched;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

pub use report::{Checked, Report, Verdict};
pub use soak::{Tally, soak};
pub use subject::{BoxError, Cannot, Subject};

/// The `main` of a test target with `harness = false`: each check is a test. It takes the arguments
/// of a usual test program.
///
/// The checks run one after the other, unless `--test-threads` says otherwise: what one does to a
/// driver, another should not feel.
pub fn main<S: Subject>(subject: S) -> ExitCode {
    if let Some(code) = again::serve(&subject) {
        return code;
    }
    if let Some(length) = soak::asked_for() {
        return soak::serve(subject, length);
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let subject = Arc::new(subject);
    let trials = checks::all::<S>()
        .into_iter()
        .map(|check| {
            let subject = Arc::clone(&subject);
            Trial::test(check.name, move || report(battery::verdict(&*subject, &check), check.name))
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn report(verdict: Verdict, name: &'static str) -> Result<(), Failed> {
    match verdict {
        Verdict::Failed(reason) => Err(reason.into()),
        Verdict::Passed => Ok(()),
        not_run @ Verdict::NotRun(_) => {
            testing::say(Checked { name, verdict: not_run });
            Ok(())
        }
    }
}

/// Runs the whole battery, and gives what came of it.
///
/// In a process that a check has started it does not return.
pub fn run<S: Subject>(subject: &S) -> Report {
    if let Some(code) = again::serve(subject) {
        std::process::exit(i32::from(code != ExitCode::SUCCESS));
    }
    let checks = checks::all::<S>()
        .into_iter()
        .map(|check| Checked { name: check.name, verdict: battery::verdict(subject, &check) })
        .collect();
    Report { subject: subject.name().to_owned(), checks }
}

/// The names of all checks, in the order in which they run.
#[must_use]
pub fn checks<S: Subject>() -> Vec<&'static str> {
    checks::all::<S>().iter().map(|check| check.name).collect()
}
