//! `cargo xtask gpu-check`: what a machine without an NVIDIA GPU can't tell. On one that has it, with its
//! driver and NVRTC: what `doctor` says, the hello-world of each API, the example kernels, the conformance
//! batteries of CUDA and Vulkan, and the soak on both.
//!
//! Such a machine may be lent for minutes, without network and without Rust. So cargo is asked for
//! nothing but packages that it has (`cargo fetch`), or for nothing at all: `--pack FOLDER` makes the
//! programs on any machine, and `FOLDER/xtask gpu-check --packed FOLDER` runs them. No step is left out
//! because another one failed, none may hang, and what takes longest comes last.

mod programs;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::doctor::Doctor;
use crate::report::{Outcome, Report};
use crate::shell;
use crate::soak;

use programs::Programs;

const USAGE: &str = "\
usage: cargo xtask gpu-check [--pack FOLDER | --packed FOLDER]

  --pack    runs nothing: makes a folder of what is needed on a machine without Rust
  --packed  with what is in this folder";

/// The backends that the GPU serves.
const BACKENDS: [&str; 2] = ["cuda", "vulkan"];

/// Of the example kernels' tests, those that launch on the GPU.
const KERNELS: [(&str, &[&str]); 2] =
    [("cuda", &["cuda::", "doubles_on_a_cuda_device"]), ("vulkan", &["vulkan::"])];

/// All of it once the programs are there: they take seconds to build on a large machine, minutes on a
/// small one, and none where they are brought along.
const BUDGET: Duration = Duration::from_secs(7 * 60);

/// Most steps take seconds; whatever has not ended by then hangs.
const LIMIT: Duration = Duration::from_secs(120);

const SOAK_SECONDS: u64 = 60;

/// As the command line says, or nothing if that makes no sense.
pub(crate) fn command(arguments: &[&str]) -> Option<Report> {
    let mut report = Report::default();
    match arguments {
        [] => run(&mut report, "building the programs", Programs::build),
        ["--packed", folder] => {
            let folder = Path::new(folder);
            // The programs are started with another current folder.
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
            run(&mut report, "the programs", || Programs::packed(&folder));
        }
        ["--pack", folder] => {
            let folder = Path::new(folder);
            report.step("packing the programs", || programs::pack(folder));
            if !report.failed() {
                let folder = folder.display();
                println!("Copy {folder} there, and run in it: ./xtask gpu-check --packed .");
            }
        }
        _ => {
            eprintln!("{USAGE}");
            return None;
        }
    }
    Some(report)
}

fn run(report: &mut Report, name: &str, programs: impl FnOnce() -> (Outcome, Programs)) {
    let mut found = Programs::default();
    report.step(name, || {
        let (outcome, programs) = programs();
        found = programs;
        outcome
    });
    let store = env::temp_dir().join(format!("grainstore-gpu-check-{}", std::process::id()));
    let place = Place { programs: found, store, end: Instant::now() + BUDGET };
    check(report, &place);
    let _ = fs::remove_dir_all(&place.store);
}

/// All of it, also where something failed.
fn check(report: &mut Report, place: &Place) {
    let mut doctor = Doctor::default();
    report.step("what doctor says", || {
        let (outcome, said) = place.run("grainstore", LIMIT, |it| {
            it.args(["doctor", "--json"]);
        });
        doctor = Doctor::read(&said);
        // It minds about other backends too. What it says of these two has rows of its own.
        if said.is_empty() { outcome } else { Outcome::Passed }
    });
    for backend in BACKENDS {
        let devices = doctor.devices(backend).join(", ");
        let name = if devices.is_empty() { "this machine" } else { &devices };
        report.step(&format!("{backend} on {name}"), || match doctor.why_not(backend) {
            None => Outcome::Passed,
            Some(why) => Outcome::Failed(why),
        });
    }
    // What is there and does not work is tried all the same: the steps tell more than one launch does.
    let mut step = |name: String, backend: &str, step: &mut dyn FnMut() -> Outcome| {
        if doctor.lacks(backend) {
            report.not_run(&name, format!("{backend} is not on this machine: see above"));
        } else if place.left().is_zero() {
            report.not_run(&name, "the minutes are over that this command has");
        } else {
            report.step(&name, step);
        }
    };
    for backend in BACKENDS {
        step(format!("example saxpy_{backend}"), backend, &mut || {
            place.run(&format!("saxpy_{backend}"), LIMIT, |_| ()).0
        });
    }
    for (backend, tests) in KERNELS {
        step(format!("example kernels on {backend}"), backend, &mut || {
            let (outcome, said) = place.run("every_kernel", LIMIT, |it| {
                it.arg("--show-output").args(tests);
            });
            // Tests that have been renamed would pass by not being there.
            if said.contains("running 0 tests") {
                return Outcome::Failed(format!("no test is called {}", tests.join(", ")));
            }
            outcome
        });
    }
    for backend in BACKENDS {
        step(format!("conformance of {backend}"), backend, &mut || {
            place.run(&format!("conformance_{backend}"), LIMIT, |_| ()).0
        });
    }
    let mut rows = Vec::new();
    for backend in BACKENDS {
        step(format!("soak of {backend} for {SOAK_SECONDS} s"), backend, &mut || {
            let mut command = match place.command(&format!("conformance_{backend}")) {
                Ok(command) => command,
                Err(why) => return Outcome::Failed(why),
            };
            let limit = place.left().min(Duration::from_secs(SOAK_SECONDS) + LIMIT);
            let (outcome, row) = soak::run_program(backend, &mut command, SOAK_SECONDS, limit);
            rows.extend(row);
            outcome
        });
    }
    soak::print(&rows);
}

/// Where and until when things run.
struct Place {
    programs: Programs,
    store: PathBuf,
    end: Instant,
}

impl Place {
    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Runs a program, within this time and what is left of it.
    fn run(
        &self,
        program: &str,
        limit: Duration,
        set: impl FnOnce(&mut Command),
    ) -> (Outcome, String) {
        match self.command(program) {
            Ok(mut command) => {
                set(&mut command);
                shell::show_within(&mut command, limit.min(self.left()))
            }
            Err(why) => (Outcome::Failed(why), String::new()),
        }
    }

    /// A program in its surroundings.
    ///
    /// # Errors
    /// It is not there.
    fn command(&self, program: &str) -> Result<Command, String> {
        let examples = self.programs.examples();
        let mut command = shell::program(&self.programs.get(program)?.to_string_lossy());
        command
            .current_dir(examples)
            .env("CARGO_MANIFEST_DIR", examples)
            .env("GRAINSTORE_DIR", &self.store)
            .env("GRAINSTORE_REQUIRE", BACKENDS.join(","));
        if env::var_os(VULKAN_DRIVERS).is_none() {
            // A driver for the processor would pass in the GPU's place.
            command.env(VULKAN_DRIVERS, "*nvidia*");
        }
        Ok(command)
    }
}

/// Which of Vulkan's drivers its loader looks at, by the names of their files.
const VULKAN_DRIVERS: &str = "VK_LOADER_DRIVERS_SELECT";
