//! `cargo xtask test`: everything that can be run, with what it needs installed first.
//!
//! The program itself says which backends work here (`grainstore doctor`). A backend that works is
//! then required of the tests, by the variable `GRAINSTORE_REQUIRE`, so that none of them passes by
//! skipping it; one that does not work is listed at the end with the reason.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::report::Report;
use crate::{packages, shell};

/// A backend, and the packages of Debian that bring it to a machine without its hardware.
const BACKENDS: [(&str, &[&str]); 2] =
    [("host", &["gcc", "libc6-dev"]), ("opencl", &["pocl-opencl-icd", "ocl-icd-libopencl1"])];

/// Runs every test, also when an earlier one failed.
pub(crate) fn run() -> Report {
    let mut report = Report::default();
    let place = Place::new();
    let mut doctor = Doctor::ask(&place);
    let mut refused = Vec::new();
    for (backend, packages) in BACKENDS {
        if doctor.why_not(backend).is_some()
            && let Err(why) = packages::install(packages)
        {
            refused.push((backend, why));
        }
    }
    if BACKENDS.iter().any(|(backend, _)| doctor.why_not(backend).is_some()) {
        doctor = Doctor::ask(&place);
    }
    let works = |backend: &&str| doctor.why_not(backend).is_none();
    let required: Vec<&str> = BACKENDS.iter().map(|(name, _)| *name).filter(works).collect();
    let required = required.join(",");
    eprintln!("backends that work here, and are required of the tests: {required}");
    let cargo = |arguments: &[&str]| {
        let mut command = shell::cargo(arguments);
        place.set(&mut command);
        command.env("GRAINSTORE_REQUIRE", &required);
        command
    };

    if shell::succeeds(&mut shell::cargo(&["nextest", "--version"])) {
        report.step("tests", || {
            shell::run(&mut cargo(&[
                "nextest",
                "run",
                "--workspace",
                "--all-features",
                "--no-fail-fast",
            ]))
        });
    } else {
        eprintln!("cargo-nextest is not installed: the tests run under cargo's own runner");
        report.step("tests", || {
            let what = ["--lib", "--bins", "--tests", "--examples"];
            let how = ["test", "--workspace", "--all-features", "--no-fail-fast"];
            shell::run(cargo(&how).args(what))
        });
    }
    report.step("documentation's examples", || {
        shell::run(&mut cargo(&[
            "test",
            "--workspace",
            "--all-features",
            "--doc",
            "--no-fail-fast",
        ]))
    });
    for (package, example) in examples() {
        report.step(&format!("example {example}"), || {
            shell::run(&mut cargo(&[
                "run",
                "--quiet",
                "--package",
                &package,
                "--example",
                &example,
            ]))
        });
    }
    for (backend, _) in BACKENDS {
        if let Some(why) = doctor.why_not(backend) {
            let asked = refused.iter().find(|(name, _)| *name == backend);
            let why = asked.map_or(why.clone(), |(_, refusal)| format!("{why} ({refusal})"));
            report.not_run(&format!("what needs {backend}"), why);
        }
    }
    report
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

/// What `grainstore doctor --json` says of this machine, as far as it matters here.
#[derive(Default, Deserialize)]
struct Doctor {
    backends: Vec<Diagnosis>,
}

#[derive(Deserialize)]
struct Diagnosis {
    backend: String,
    launched: bool,
    error: Option<String>,
    hint: Option<String>,
}

impl Doctor {
    fn ask(place: &Place) -> Self {
        let arguments = ["run", "--quiet", "--package", "grainstore-cli", "--", "doctor", "--json"];
        let mut command = shell::cargo(&arguments);
        place.set(&mut command);
        shell::output(&mut command)
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// Why a backend does not work here, if it does not.
    fn why_not(&self, backend: &str) -> Option<String> {
        let Some(diagnosis) = self.backends.iter().find(|known| known.backend == backend) else {
            return Some("`grainstore doctor` does not know it: see what it printed above".into());
        };
        if diagnosis.launched {
            return None;
        }
        let parts: Vec<&str> =
            [&diagnosis.error, &diagnosis.hint].into_iter().flatten().map(String::as_str).collect();
        Some(if parts.is_empty() { "it is not there".into() } else { parts.join("; ") })
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
