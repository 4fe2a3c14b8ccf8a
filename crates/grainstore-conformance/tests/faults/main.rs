//! The battery can fail: backends with one planted fault each, and the checks that must report it.
//!
//! Each runs in a process of its own, which prints its report; these tests read it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod faulty;
#[path = "../../examples/stranger.rs"]
#[allow(dead_code, reason = "its own main is not called here")]
mod stranger;

use std::collections::BTreeSet;
use std::env;
use std::process::{Command, ExitCode};

use faulty::{Fault, Faulty};
use libtest_mimic::{Arguments, Failed, Trial};

/// Which fault this process plays.
const FAULT: &str = "GRAINSTORE_CONFORMANCE_FAULT";

/// The check that the stranger has nothing for.
const CONSTANTS: &str = "constant_in_key";

/// The checks that need an artifact.
const ARTIFACTS: [&str; 6] = [
    "load_and_launch",
    "artifact_in_new_process",
    "foreign_artifact",
    "cut_artifact",
    "flipped_artifact",
    "empty_artifact",
];

fn main() -> ExitCode {
    if let Ok(name) = env::var(FAULT) {
        let fault = Fault::ALL.into_iter().find(|fault| fault.name() == name).unwrap();
        println!("{}", grainstore_conformance::run(&Faulty(fault)));
        return ExitCode::SUCCESS;
    }
    let mut trials: Vec<_> = Fault::ALL
        .into_iter()
        .map(|fault| Trial::test(fault.name(), move || reported(fault, None)))
        .collect();
    trials.push(Trial::test("Absent, though it is required", || {
        reported(Fault::Absent, Some("nobody, stack"))
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The checks that must fail for this fault, and no others.
fn expected(fault: Fault) -> Vec<&'static str> {
    match fault {
        Fault::None | Fault::NoArtifactForAReason | Fault::Absent => vec![],
        Fault::AcceptsForeign => vec!["foreign_artifact"],
        Fault::AcceptsCut => vec!["cut_artifact"],
        Fault::AcceptsFlipped => vec!["flipped_artifact"],
        Fault::AcceptsEmpty => vec!["empty_artifact"],
        Fault::DiesOfCut => vec!["cut_artifact"],
        Fault::NoArtifact => ARTIFACTS.to_vec(),
        Fault::ArtifactOfProcess => vec!["artifact_in_new_process"],
        Fault::ToolchainOfProcess => vec!["artifact_in_new_process"],
        Fault::ToolchainOfBackend => vec!["identity", "artifact_in_new_process"],
        Fault::ForgetsOptions => vec!["option_in_key"],
        Fault::ForgetsDefines => vec!["define_in_key"],
        Fault::ForgetsHeaders => vec!["header_in_key"],
        Fault::ForgetsEntry => vec!["missing_entry_point"],
        Fault::NoLog | Fault::LogWithPath => vec!["wrong_source"],
        Fault::AcceptsWrong => vec!["wrong_source", "no_handle_left"],
        Fault::CompilesNothing | Fault::CompilesUnsaid | Fault::RefusesWhatItSays => {
            vec!["compile_without_device"]
        }
        Fault::AnyDevice => vec!["unknown_device"],
        Fault::OneBuildAtATime => vec!["many_kernels_in_parallel"],
        Fault::UnloadsEquals => {
            vec![
                "load_and_launch",
                "launch_while_cleared",
                "launch_while_removed",
                "device_given_up",
            ]
        }
        Fault::LeaksOnUnload | Fault::LeaksOnFailure | Fault::UnloadsTwice => {
            vec!["no_handle_left"]
        }
        Fault::KillsOnForget => vec!["device_given_up"],
        Fault::OneLife => vec!["device_made_again"],
        Fault::DiesAtExit => vec!["exit_while_pinned", "exit_after_shutdown"],
        Fault::PanicsWhenMissing | Fault::MissingWithoutName => vec!["missing_library"],
    }
}

/// The checks that are not run, beside those that the stranger has nothing for.
fn not_run(fault: Fault) -> Vec<&'static str> {
    let all = grainstore_conformance::checks::<Faulty>();
    match fault {
        Fault::NoArtifactForAReason => ARTIFACTS.to_vec(),
        Fault::Absent => all.into_iter().filter(|name| *name != "missing_library").collect(),
        _ => vec![],
    }
}

fn reported(fault: Fault, required: Option<&str>) -> Result<(), Failed> {
    let output = Command::new(env::current_exe()?)
        .env(FAULT, fault.name())
        .env("GRAINSTORE_REQUIRE", required.unwrap_or_default())
        .output()?;
    let report = String::from_utf8_lossy(&output.stdout);
    let named = |kind: &str| -> BTreeSet<&str> {
        report
            .lines()
            .filter_map(|line| line.strip_prefix(kind)?.split(':').next().map(str::trim))
            .collect()
    };
    let (mut failed, mut unrun) =
        (BTreeSet::from_iter(expected(fault)), BTreeSet::from_iter(not_run(fault)));
    if required.is_some() {
        failed.extend(std::mem::take(&mut unrun));
    }
    // What no driver could do stays what it is.
    failed.remove(CONSTANTS);
    unrun.insert(CONSTANTS);
    if output.status.success() && named("failed: ") == failed && named("not run: ") == unrun {
        return Ok(());
    }
    Err(format!(
        "{fault:?} ({}): {failed:?} should fail, and {unrun:?} not run, but:\n{report}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    )
    .into())
}
