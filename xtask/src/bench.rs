//! `cargo xtask bench`: our cache beside its peers; and the guard of the hit's instruction count.
//!
//! The bench is a workspace of its own, so that the peers are nobody's dependencies but its own.

use std::process::{Command, ExitCode};

use crate::report::{Outcome, Report};
use crate::{packages, shell};

/// Builds the comparison and runs it with these arguments; `--help` lists them.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match shell::run(cargo("run", &["--bin", "compare", "--"]).args(arguments)) {
        Outcome::Passed => ExitCode::SUCCESS,
        Outcome::Failed(why) | Outcome::NotRun(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Counts the instructions of a hit and compares them with the limits in `bench/limits.txt`: what
/// times can't guard on a busy machine. Builds no peer.
pub(crate) fn guard(report: &mut Report) {
    const STEP: &str = "instructions of a hit";
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return report.not_run(STEP, "the limits are those of x86-64 Linux");
    }
    let there = || shell::succeeds(shell::program("valgrind").arg("--version"));
    if !there()
        && let Err(why) = packages::install(&["valgrind"])
    {
        return report.not_run(STEP, format!("valgrind is not installed ({why})"));
    }
    if !there() {
        return report.not_run(STEP, "valgrind was installed and does not run");
    }
    report.step(STEP, || {
        let arguments = ["--no-default-features", "--bin", "instructions", "--"];
        shell::run(cargo("run", &arguments).arg(shell::root().join("bench/limits.txt")))
    });
}

/// Cargo on the bench's workspace, with a build folder beside ours.
fn cargo(subcommand: &str, arguments: &[&str]) -> Command {
    let bench = shell::root().join("bench");
    let mut command = shell::cargo(&[subcommand, "--release", "--manifest-path"]);
    command.arg(bench.join("Cargo.toml"));
    command.arg("--target-dir").arg(shell::target().join("bench")).args(arguments);
    command
}
