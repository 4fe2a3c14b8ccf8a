//! `cargo xtask prove`: the cache under tools that try what no plain test can.
//!
//! Each tool builds the crate in its own way, into a folder of its own. A test that explores says
//! how much in a line that begins with `proof:`; those lines make the table.

use std::path::PathBuf;
use std::process::Command;

use crate::report::Report;
use crate::{mutants, shell, tools};

/// How many schedules each of shuttle's tests tries, if nothing else is said.
const SCHEDULES: &str = "50000";
/// How far the quick run goes: so many preemptions for loom, so many schedules for shuttle.
const QUICK_PREEMPTIONS: &str = "3";
const QUICK_SCHEDULES: &str = "2000";
/// How many sequences of calls the reference model is compared on.
const CASES: &str = "5000";
/// How long each fuzz target runs, in seconds, and how long each stress test.
const FUZZING: &str = "60";
const STRESS: &str = "20";
const FUZZ_TARGETS: [&str; 4] = ["operations", "keys", "tensors", "artifacts"];
const NO_NIGHTLY: &str = "rustup has no nightly toolchain here";
/// The target that the sanitizers are known to work on here.
const SANITIZED: &str = "x86_64-unknown-linux-gnu";

/// What one exploration did.
struct Proof {
    tool: String,
    what: String,
    how_much: String,
    took: String,
}

/// Runs all of it, also when a part of it failed. What takes hours only if it is asked for.
pub(crate) fn run(with_mutants: bool) -> Report {
    let mut report = Report::default();
    let mut proofs = Vec::new();
    let mut explore = |report: &mut Report, name: &str, command: &mut Command| {
        report.step(name, || {
            let (outcome, said) = shell::show(command);
            proofs.extend(said.lines().filter_map(proof));
            outcome
        });
    };
    explore(&mut report, "loom", &mut model("loom"));
    let mut shuttle = model("shuttle");
    if std::env::var_os("GRAINSTORE_SCHEDULES").is_none() {
        shuttle.env("GRAINSTORE_SCHEDULES", SCHEDULES);
    }
    explore(&mut report, "shuttle", &mut shuttle);
    report.step(&format!("reference model, {CASES} sequences each"), || {
        let test = ["test", "--release", "--package", "grainstore", "--test", "suite", "model::"];
        shell::run(shell::cargo(&test).env("PROPTEST_CASES", CASES))
    });
    if shell::succeeds(&mut nightly(&["--version"])) {
        report.step("AddressSanitizer", || shell::run(&mut sanitized("address")));
        report.step("ThreadSanitizer", || {
            let options = format!("suppressions={}", shell::root().join("fuzz/tsan.txt").display());
            shell::run(sanitized("thread").env("TSAN_OPTIONS", options))
        });
        fuzz(&mut report);
    } else {
        let why = NO_NIGHTLY;
        for tool in ["AddressSanitizer", "ThreadSanitizer", "fuzzing"] {
            report.not_run(tool, why);
        }
    }
    if shell::succeeds(&mut nightly(&["miri", "--version"])) {
        let test = ["miri", "test", "--package", "grainstore"];
        report.step("Miri, on the parts", || shell::run(nightly(&test).arg("--lib")));
        report.step("Miri, on pins and releases", || {
            let tests = ["--test", "suite", "--", "pins::", "release::"];
            shell::run(nightly(&test).args(tests))
        });
    } else {
        report.not_run("Miri", "the nightly toolchain here has no component `miri`");
    }
    if with_mutants {
        mutants::run(&mut report, &[]);
    } else {
        report.not_run("mutation testing", "it takes hours: `cargo xtask prove --mutants`");
    }
    print(&proofs);
    report
}

/// What is quick of it: every model and every test of the model checkers, on a part of the
/// interleavings. Most of the time goes into the two builds.
pub(crate) fn quick(report: &mut Report) {
    report.step(&format!("loom, up to {QUICK_PREEMPTIONS} preemptions"), || {
        shell::run(model("loom").env("LOOM_MAX_PREEMPTIONS", QUICK_PREEMPTIONS))
    });
    report.step(&format!("shuttle, {QUICK_SCHEDULES} schedules each"), || {
        shell::run(model("shuttle").env("GRAINSTORE_SCHEDULES", QUICK_SCHEDULES))
    });
}

/// A build on the types of a model checker, with its tests. Models are small but many: they want
/// optimized code, and the assertions of the code that ships.
fn model(checker: &str) -> Command {
    let mut command = shell::cargo(&["test", "--release", "--package", "grainstore"]);
    command
        .args(["--test", checker, "--", "--nocapture"])
        .env("RUSTFLAGS", format!("--cfg {checker} -C debug-assertions"))
        .env("CARGO_TARGET_DIR", folder(checker));
    command
}

/// The tests of the cache on many threads, and those of its own parts, under a sanitizer.
fn sanitized(sanitizer: &str) -> Command {
    let mut command = nightly(&["test", "--package", "grainstore", "--target", SANITIZED]);
    let mut flags = format!("-Zsanitizer={sanitizer} -C debug-assertions");
    if sanitizer == "thread" {
        // The standard library is not built for it, so its locks would be out of its sight.
        flags += " --cfg grainstore_tsan -C unsafe-allow-abi-mismatch=sanitizer";
        command.args(["--test", "stress"]);
    } else {
        command.args(["--lib", "--tests"]);
        // What tests forget on purpose is no leak of ours.
        command.env("ASAN_OPTIONS", "detect_leaks=0");
    }
    command
        .env("RUSTFLAGS", flags)
        .env("GRAINSTORE_STRESS_SECONDS", STRESS)
        .env("CARGO_TARGET_DIR", folder(sanitizer));
    command
}

/// A build of anything under AddressSanitizer.
pub(crate) fn with_sanitizer(arguments: &[&str]) -> Command {
    let mut command = nightly(arguments);
    command
        .args(["--target", SANITIZED])
        .env("RUSTFLAGS", "-Zsanitizer=address -C debug-assertions")
        .env("CARGO_TARGET_DIR", folder("address"));
    command
}

/// Why nothing can be built under a sanitizer here, if that is so.
pub(crate) fn why_no_sanitizer() -> Option<&'static str> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("the sanitizers are known to work on x86-64 Linux");
    }
    (!shell::succeeds(&mut nightly(&["--version"]))).then_some(NO_NIGHTLY)
}

fn fuzz(report: &mut Report) {
    let ready = tools::cargo_tool("fuzz", "0.13.1");
    for target in FUZZ_TARGETS {
        let name = format!("fuzzing {target}, {FUZZING} s");
        match &ready {
            Ok(tool) => report.step(&name, || {
                let mut command = nightly(&["fuzz", "run", target]);
                if let Some(path) = tool.get_envs().find(|(name, _)| *name == "PATH") {
                    command.env("PATH", path.1.unwrap_or_default());
                }
                command.args(["--", &format!("-max_total_time={FUZZING}")]);
                // Values that are abandoned leak on purpose.
                command.env("ASAN_OPTIONS", "detect_leaks=0");
                shell::run(command.env("CARGO_TARGET_DIR", folder("fuzz")))
            }),
            Err(why) => report.not_run(&name, why),
        }
    }
}

/// Cargo of the nightly toolchain.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = shell::program("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments);
    // Cargo sets these for its children, and they would lead back to the other toolchain.
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}

fn folder(tool: &str) -> PathBuf {
    shell::target().join("prove").join(tool)
}

/// Reads `proof: TOOL: WHAT: HOW MUCH: HOW LONG`.
fn proof(line: &str) -> Option<Proof> {
    let mut parts = line.strip_prefix("proof: ")?.split(": ").map(str::to_owned);
    let (tool, what) = (parts.next()?, parts.next()?);
    Some(Proof { tool, what, how_much: parts.next()?, took: parts.next()? })
}

fn print(proofs: &[Proof]) {
    let width = |part: fn(&Proof) -> &str| {
        proofs.iter().map(|proof| part(proof).chars().count()).max().unwrap_or(0)
    };
    let (tools, whats) = (width(|proof| &proof.tool), width(|proof| &proof.what));
    let how_much = width(|proof| &proof.how_much);
    println!();
    for Proof { tool, what, how_much: much, took } in proofs {
        println!("{tool:tools$}  {what:whats$}  {much:how_much$}  {took:>8}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_read_from_its_line() {
        let read = proof("proof: loom: a pin: 12 interleavings, all there are: 0.1 s").unwrap();
        assert_eq!((&*read.tool, &*read.what), ("loom", "a pin"));
        assert_eq!((&*read.how_much, &*read.took), ("12 interleavings, all there are", "0.1 s"));
        assert!(proof("test a_pin ... ok").is_none());
    }
}
