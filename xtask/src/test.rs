//! `cargo xtask test`: everything that can be run, with what it needs installed first.
//!
//! The program itself says which backends work here (`grainstore doctor`). A backend that works is
//! then required of the tests, by the variable `GRAINSTORE_REQUIRE`, so that none of them passes by
//! skipping it; one that does not work is listed at the end with the reason. So is every test that
//! says itself that it could not do its work here.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::bench;
use crate::doctor::Doctor;
use crate::not_run;
use crate::nvrtc;
use crate::packages;
use crate::prove;
use crate::report::{Outcome, Report};
use crate::shell;
use crate::soak;
use crate::torture;

/// A backend, and the packages of Debian that bring it to a machine without its hardware. There are
/// none for CUDA: its compiler comes from elsewhere, and its driver with the card.
const BACKENDS: [(&str, &[&str]); 5] = [
    ("host", &["gcc", "libc6-dev"]),
    ("opencl", &["pocl-opencl-icd", "ocl-icd-libopencl1"]),
    ("vulkan", &["mesa-vulkan-drivers", "libvulkan1"]),
    ("wgpu", &["mesa-vulkan-drivers", "libvulkan1"]),
    ("cuda", &[]),
];

/// On each backend: with the four that need no card that is a minute.
const SOAK_SECONDS: u64 = 15;

/// Runs every test, also when an earlier one failed.
pub(crate) fn run() -> Report {
    let mut report = Report::default();
    let mut missing = Vec::new();
    let nvrtc = nvrtc::find().unwrap_or_else(|why| {
        missing.push(("NVRTC", why));
        Vec::new()
    });
    let place = Place::new(nvrtc);
    let mut works = prepare(&place, &mut missing);
    eprintln!("backends that work here, and are required of the tests: {}", works.join(", "));
    if !place.nvrtc.is_empty() {
        works.push("nvrtc");
    }
    let cargo = |arguments: &[&str]| {
        let mut command = shell::cargo(arguments);
        place.set(&mut command);
        command.args(["--workspace", "--all-features"]);
        command.env("GRAINSTORE_REQUIRE", works.join(","));
        command
    };

    if shell::succeeds(&mut shell::cargo(&["nextest", "--version"])) {
        not_run::forget();
        report.step("tests", || shell::run(cargo(&["nextest", "run"]).arg("--no-fail-fast")));
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
            let kinds = ["--no-fail-fast", "--lib", "--bins", "--tests", "--examples"];
            shell::run(cargo(&["test"]).args(kinds).args(["--", "--show-output"]))
        });
        report.not_run("the table of what tests could not do", "cargo-nextest is not installed");
    }
    report.step("documentation's examples", || {
        shell::run(cargo(&["test"]).args(["--no-fail-fast", "--doc"]))
    });
    // All at once and as the tests are built, so that nothing is built twice.
    report.step("building the examples", || shell::run(cargo(&["build"]).arg("--examples")));
    for example in examples() {
        report.step(&format!("example {example}"), || {
            let program = shell::target().join("debug/examples").join(&example);
            let mut command = shell::program(&program.to_string_lossy());
            place.set(&mut command);
            let (outcome, said) = shell::show(&mut command);
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

/// Installs what is missing, where that can be done. Gives the backends that work then, and notes why
/// the others do not.
fn prepare(place: &Place, missing: &mut Vec<(&'static str, String)>) -> Vec<&'static str> {
    let ask = || Doctor::ask(|command| place.set(command));
    let mut doctor = ask();
    let mut refused = Vec::new();
    for (backend, packages) in BACKENDS {
        let wanting = doctor.knows(backend) && doctor.why_not(backend).is_some();
        if wanting && !packages.is_empty() {
            match packages::install(packages) {
                Ok(()) => doctor = ask(),
                Err(why) => refused.push((backend, why)),
            }
        }
    }
    let mut works = Vec::new();
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
    works
}

/// Folders of the tests' own, so that nothing of the user's is read, measured or changed.
struct Place {
    folder: PathBuf,
    /// Every NVRTC to test with.
    nvrtc: Vec<PathBuf>,
}

impl Place {
    fn new(nvrtc: Vec<PathBuf>) -> Self {
        let folder = shell::target().join("xtask");
        // What an earlier run left would make this one warm.
        let _ = fs::remove_dir_all(&folder);
        Self { folder, nvrtc }
    }

    fn set(&self, command: &mut Command) {
        command
            .env("XDG_CACHE_HOME", self.folder.join("cache"))
            .env("GRAINSTORE_DIR", self.folder.join("store"))
            .env("POCL_CACHE_DIR", self.folder.join("pocl"))
            // The drivers' own caches would be measured instead of ours.
            .env("POCL_KERNEL_CACHE", "0")
            .env("MESA_SHADER_CACHE_DISABLE", "true");
        if let (Some(first), Ok(all)) = (self.nvrtc.first(), env::join_paths(&self.nvrtc)) {
            command.env("GRAINSTORE_NVRTC_LIBRARY", first).env("GRAINSTORE_TEST_NVRTC", all);
        }
    }
}

/// Every example of the workspace, by the name of its program.
fn examples() -> Vec<String> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
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
    let targets =
        metadata.into_iter().flat_map(|metadata| metadata.packages).flat_map(|it| it.targets);
    let is_example = |target: &Target| target.kind.iter().any(|kind| kind == "example");
    let mut examples: Vec<_> =
        targets.filter(is_example).map(|target| target.name + env::consts::EXE_SUFFIX).collect();
    examples.sort();
    examples
}
