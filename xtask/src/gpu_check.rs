//! `cargo xtask gpu-check`: what a machine without an NVIDIA GPU can't tell. On one that has it, with its
//! driver and NVRTC: the conformance batteries of CUDA and Vulkan, the example kernels on Vulkan, and the
//! soak on both. Wants no network, once cargo has its packages (`cargo fetch`).

use std::process::Command;

use crate::doctor::Doctor;
use crate::report::{Outcome, Report};
use crate::shell;
use crate::soak;

/// The backends that the GPU serves.
const BACKENDS: [&str; 2] = ["cuda", "vulkan"];

/// On each; with the builds, all of it takes some five minutes.
const SOAK_SECONDS: u64 = 60;

/// Runs all of it, also where something failed.
pub(crate) fn run() -> Report {
    let mut report = Report::default();
    let doctor = Doctor::ask(surroundings);
    for backend in BACKENDS {
        report.step(&format!("{backend} on this machine"), || match doctor.why_not(backend) {
            None => Outcome::Passed,
            Some(why) => Outcome::Failed(why),
        });
    }
    let tests = |arguments: &[&str]| {
        let mut command = shell::cargo(&["test", "--workspace", "--all-features"]);
        surroundings(&mut command);
        command.env("GRAINSTORE_REQUIRE", BACKENDS.join(",")).args(arguments);
        shell::run(&mut command)
    };
    // Both batteries are programs of this name; those of other backends say what they lack here.
    report.step("conformance", || tests(&["--no-fail-fast", "--test", "conformance"]));
    report.step("example kernels", || tests(&["--test", "every_kernel"]));
    report.step("examples", || tests(&["--no-run", "--examples"]));
    for example in ["saxpy_cuda", "saxpy_vulkan"] {
        report.step(&format!("example {example}"), || {
            let program = shell::target().join("debug/examples").join(example);
            let mut command = shell::program(&program.to_string_lossy());
            surroundings(&mut command);
            shell::run(&mut command)
        });
    }
    soak::run_on(&mut report, SOAK_SECONDS, &BACKENDS);
    report
}

fn surroundings(command: &mut Command) {
    command
        .env("CARGO_NET_OFFLINE", "true")
        .env("GRAINSTORE_DIR", shell::target().join("xtask/gpu-check"));
}
