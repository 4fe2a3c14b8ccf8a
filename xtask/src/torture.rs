//! `cargo xtask torture --minutes N`: processes that do everything to one store and are killed at random
//! instants, over and over; then everything is verified, and a table tells what happened.
//!
//! The torture itself is a test of `grainstore-artifacts`. Beside it run the tests of its neighbours:
//! small disks that fill up, and many processes that want the same kernels at once.

use crate::report::{Outcome, Report};
use crate::shell;

const USAGE: &str = "usage: cargo xtask torture [--minutes N]   (default: 10)";

/// As the command line says, or nothing if that makes no sense.
pub(crate) fn command(arguments: &[&str]) -> Option<Report> {
    let minutes = match arguments {
        [] => Some(10.0),
        ["--minutes", minutes] => minutes.parse().ok().filter(|minutes| *minutes > 0.0),
        _ => None,
    };
    let Some(minutes) = minutes else {
        eprintln!("{USAGE}");
        return None;
    };
    let mut report = Report::default();
    run(&mut report, minutes);
    Some(report)
}

/// For so many minutes, and then its neighbours.
pub(crate) fn run(report: &mut Report, minutes: f64) {
    let seconds = (minutes * 60.0).ceil().max(1.0);
    report.step(&format!("torture for {minutes} minutes"), || {
        tests(&["torture"], seconds, &["a7_killed_over_and_over"])
    });
    report.step("full disks, and many processes at once", || {
        tests(&["faults", "lease", "processes", "bundle"], seconds, &[])
    });
}

fn tests(targets: &[&str], seconds: f64, filter: &[&str]) -> Outcome {
    let mut command = shell::cargo(&["test", "--release", "--package", "grainstore-artifacts"]);
    for target in targets {
        command.args(["--test", target]);
    }
    command.args(["--", "--nocapture"]).args(filter);
    command.env("GRAINSTORE_TORTURE_SECONDS", format!("{seconds:.0}"));
    shell::run(&mut command)
}
