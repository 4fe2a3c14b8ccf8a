//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::Command;

use grainstore::{DeviceId, Family};
use grainstore_conformance::testing;
use grainstore_host::HostModule;
use grainstore_runtime::{KernelSpec, KernelSpecBuilder, Language};

pub(crate) const DEVICE: DeviceId = DeviceId::new(Family::HOST, 0);

pub(crate) const SAXPY: &str = "\
void saxpy(int n, float a, const float *x, float *y) {
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}
";

pub(crate) fn spec(source: &str) -> KernelSpecBuilder {
    KernelSpec::builder("saxpy", Language::C).source(source)
}

pub(crate) fn saxpy() -> KernelSpec {
    spec(SAXPY).entry("saxpy").build().unwrap()
}

/// Launches `saxpy` and checks the numbers.
pub(crate) fn check_saxpy(module: &HostModule) {
    type Saxpy = unsafe extern "C" fn(i32, f32, *const f32, *mut f32);
    let x: Vec<f32> = (0..1000u16).map(f32::from).collect();
    let mut y = vec![1.0; 1000];
    // SAFETY: this is the function's signature, and both arrays are as long as it says.
    unsafe { module.get::<Saxpy>("saxpy").unwrap()(1000, 2.0, x.as_ptr(), y.as_mut_ptr()) };
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 2.0 * x + 1.0));
}

/// The result of a kernel without arguments.
pub(crate) fn answer(module: &HostModule, name: &str) -> i32 {
    // SAFETY: the tests' functions have this signature.
    unsafe { module.get::<unsafe extern "C" fn() -> i32>(name).unwrap()() }
}

/// Runs one test of this test program in a process of its own, with these variables.
pub(crate) fn in_child(test: &str, variables: &[(&str, &str)]) {
    testing::in_child(test, |command| {
        command.envs(variables.iter().copied());
    });
}

/// An executable shell script.
#[cfg(unix)]
pub(crate) fn script(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    // Written by another process: where this one has the file open for writing while some other
    // test starts a program, that program holds it open too, and the script cannot be run.
    let write = Command::new("sh")
        .args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\" && chmod 755 \"$0\""])
        .args([path.as_os_str(), text.as_ref()])
        .status();
    assert!(write.unwrap().success());
    path
}

/// The names of all that is in a folder.
pub(crate) fn listing(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}
