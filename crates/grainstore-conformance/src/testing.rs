//! What a backend's own tests need beside the battery: a process of their own, and a word where the
//! driver is not here.
//!
//! A failure is a panic, as everywhere in tests.

use std::env;
use std::fmt::Display;
use std::io::Write;
use std::process::Command;

use grainstore::DeviceId;
use grainstore_runtime::{Backend, BackendError};

/// The variable that names, with commas, the backends whose driver must be here.
pub(crate) const REQUIRE: &str = "GRAINSTORE_REQUIRE";

/// Set in the processes that [`in_child`] starts.
const CHILD: &str = "GRAINSTORE_TEST_CHILD";

/// How the line begins that says what was not run.
const NOT_RUN: &str = "not run: ";

/// Runs the body with the backend's first device. `test` is the calling test's name.
///
/// Without a driver or a device the body does not run: see [`not_run`].
///
/// # Panics
/// Where the driver is here and fails.
pub fn on_device<B: Backend>(test: &str, backend: &B, body: impl FnOnce(&B, DeviceId)) {
    match backend.devices() {
        Ok(devices) => match devices.first() {
            Some(device) => body(backend, device.id),
            None => not_run(test, backend.name(), "the drivers that are there have no device"),
        },
        Err(missing @ BackendError::Missing { .. }) => not_run(test, backend.name(), missing),
        Err(other) => panic!("{test}: {other}"),
    }
}

/// Says on standard error that a test did not run, since something is missing: a backend's driver, by
/// the backend's name, or a compiler.
///
/// # Panics
/// Where that [has to be here](is_required).
pub fn not_run(test: &str, missing: &str, reason: impl Display) {
    assert!(!is_required(missing), "{test}: {REQUIRE} names {missing}, but: {reason}");
    say(format_args!("{NOT_RUN}{test}: {reason}"));
}

/// Whether the variable `GRAINSTORE_REQUIRE`, a list with commas, names this.
#[must_use]
pub fn is_required(name: &str) -> bool {
    env::var(REQUIRE).unwrap_or_default().split(',').any(|required| required.trim() == name)
}

/// Runs one test of this test program in a process of its own, since a driver reads its variables
/// once, and a process has one current folder: `prepare` sets them. There [`is_child`] is true, what
/// is asserted there fails here, and what was not run there is said here.
///
/// # Panics
/// Where the test fails, or there is none of that name.
pub fn in_child(test: &str, prepare: impl FnOnce(&mut Command)) {
    let program = env::current_exe().unwrap_or_else(|error| panic!("this test program: {error}"));
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    prepare(&mut command);
    let output = command.output().unwrap_or_else(|error| panic!("starting {test}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{test} failed in its own process ({}):\n{text}\n{said}",
        output.status
    );
    said.lines().filter(|line| line.starts_with(NOT_RUN)).for_each(say);
}

/// Whether [`in_child`] started this process.
#[must_use]
pub fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Past the test harness, which keeps what tests print to itself when they pass.
pub(crate) fn say(line: impl Display) {
    // A line that can't be written has nobody who reads it.
    let _ = writeln!(std::io::stderr(), "{line}");
}
