//! `cargo xtask test`: everything that can be run, with what it needs installed first.
//!
//! The program itself says which backends work here (`grainstore doctor`). A backend that works is
//! then required of the tests, by the variable `GRAINSTORE_REQUIRE`, so that none of them passes by
//! skipping it; one that does not work is listed at the end with the reason. So is every test that
//! says itself that it could not do its work here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::bench;
use crate::doctor::Doctor;
use crate::not_run;
use crate::packages;
use crate::prove;
use crate::report::{Outcome, Report};
use crate::shell;
use crate::soak;
use crate::torture;

/// A backend, and the packages of Debian that bring it to a machine without its hardware.
const BACKENDS: [(&str, &[&str]); 2] =
    [("host", &["gcc", "libc6-dev"]), ("opencl", &["pocl-opencl-icd", "ocl-icd-libopencl1"])];

/// On each backend: with four of them that is a minute.
const SOAK_SECONDS: u64 = 15;

/// Runs every test, also when an earlier one failed.
pub(crate) fn run() -> Report {
    let mut report = Report::default();
    let place = Place::new();
    let (works, missing) = prepare(&place);
    eprintln!("backends that work here, and are required of the tests: {}", works.join(", "));
    let cargo = |arguments: &[&str]| {
        let mut command = shell::cargo(arguments);
        place.set(&mut command);
        command.args(["--workspace", "--all-features", "--no-fail-fast"]);
        command.env("GRAINSTORE_REQUIRE", works.join(","));
        command
    };

    if shell::succeeds(&mut shell::cargo(&["nextest", "--version"])) {
        not_run::forget();
        report.step("tests", || shell::run(&mut cargo(&["nextest", "run"])));
        for (test, why) in not_run::of_last_run() {
            report.not_run(&test, why);
        }
        let list = ["nextest", "list", "--workspace", "--all-features", "-T", "oneline"];
        let ignored = shell::output(shell::cargo(&list).args(["--run-ignored", "only"]));
        for test in ignored.unwrap_or_default().lines() {
            report.not_run(test, "`#[ignore]`, where its source says why");
        }
    } else {
        report.step("tests", || {
            // All that they say is shown, so what did not run is too.
            let what = ["--lib", "--bins", "--tests", "--examples", "--", "--show-output"];
            shell::run(cargo(&["test"]).args(what))
        });
        report.not_run("the table of what tests could not do", "cargo-nextest is not installed");
    }
    report.step("documentation's examples", || shell::run(cargo(&["test"]).arg("--doc")));
    for (package, example) in examples() {
        report.step(&format!("example {example}"), || {
            let mut command = shell::cargo(&["run", "--quiet"]);
            place.set(&mut command);
            let (outcome, said) =
                shell::show(command.args(["--package", &package, "--example", &example]));
            match not_run::marked(&said).pop() {
                Some((_, why)) if outcome == Outcome::Passed => Outcome::NotRun(why),
                _ => outcome,
            }
        });
    }
    prove::quick(&mut report);
    torture::run(&mut report, 2.0);
    soak::run(&mut report, SOAK_SECONDS, &works);
    bench::guard(&mut report);
    for (backend, why) in missing {
        report.not_run(&format!("what needs {backend}"), why);
    }
    report
}

/// Installs what is missing, where that can be done. Gives the backends that work then, and why the
/// others do not.
fn prepare(place: &Place) -> (Vec<&'static str>, Vec<(&'static str, String)>) {
    let ask = || Doctor::ask(|command| place.set(command));
    let mut doctor = ask();
    let mut refused = Vec::new();
    for (backend, packages) in BACKENDS {
        if doctor.knows(backend) && doctor.why_not(backend).is_some() {
            match packages::install(packages) {
                Ok(()) => doctor = ask(),
                Err(why) => refused.push((backend, why)),
            }
        }
    }
    let (mut works, mut missing) = (Vec::new(), Vec::new());
    for (backend, _) in BACKENDS {
        let Some(mut why) = doctor.why_not(backend) else {
            works.push(backend);
            continue;
        };
        if let Some((_, refusal)) = refused.iter().find(|(name, _)| *name == backend) {
            why = format!("{why} ({refusal})");
        }
        missing.push((backend, why));
    }
    (works, missing)
}

/// Folders of the tests' own, so that nothing of the user's is read, measured or changed.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = shell::target().join("xtask");
        // What an earlier run left would make this one warm.
        let _ = fs::remove_dir_all(&folder);
        Self { folder }
    }

    fn set(&self, command: &mut Command) {
        command
            .env("XDG_CACHE_HOME", self.folder.join("cache"))
            .env("GRAINSTORE_DIR", self.folder.join("store"))
            .env("POCL_CACHE_DIR", self.folder.join("pocl"))
            // PoCL's own cache would be measured instead of ours.
            .env("POCL_KERNEL_CACHE", "0");
    }
}

/// Every example of the workspace, with its package, by name.
fn examples() -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        targets: Vec<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        kind: Vec<String>,
    }
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata: Option<Metadata> = shell::output(&mut shell::cargo(&arguments))
        .and_then(|text| serde_json::from_str(&text).ok());
    let mut examples = Vec::new();
    for package in metadata.into_iter().flat_map(|metadata| metadata.packages) {
        let is_example = |target: &&Target| target.kind.iter().any(|kind| kind == "example");
        for target in package.targets.iter().filter(is_example) {
            examples.push((package.name.clone(), target.name.clone()));
        }
    }
    examples.sort();
    examples
}
