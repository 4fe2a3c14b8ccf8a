//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "the fake driver's functions: see there")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub(crate) mod driver;
pub(crate) mod fake;
pub(crate) mod subject;

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use grainstore_cuda::CudaBackend;
use grainstore_runtime::{Backend, BackendError, KernelSpec, KernelSpecBuilder, Language, Target};

pub(crate) const SAXPY: &str = "\
extern \"C\" __global__ void saxpy(float a, const float *x, float *y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i] + y[i];
}
";

pub(crate) fn spec(source: &str) -> KernelSpecBuilder {
    KernelSpec::builder("saxpy", Language::CudaCpp).source(source)
}

pub(crate) fn saxpy() -> KernelSpec {
    spec(SAXPY).entry("saxpy").build().unwrap()
}

pub(crate) fn hopper() -> Target {
    Target::new("sm_90")
}

/// The NVRTC libraries to test with: those in `GRAINSTORE_TEST_NVRTC` (files or folders, separated as
/// in `PATH`), else the one that the backend finds.
pub(crate) fn nvrtcs() -> Vec<Option<PathBuf>> {
    let list = env::var_os("GRAINSTORE_TEST_NVRTC").unwrap_or_default();
    let paths: Vec<_> =
        env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).map(Some).collect();
    if paths.is_empty() { vec![None] } else { paths }
}

/// A backend with this NVRTC and no driver.
pub(crate) fn compiler(nvrtc: Option<PathBuf>) -> CudaBackend {
    let builder = CudaBackend::builder().driver("/nowhere/libcuda.so.1");
    match nvrtc {
        Some(path) => builder.nvrtc(path).build(),
        None => builder.build(),
    }
}

/// Runs the body with each NVRTC that is here. Without one the body does not run, and says so;
/// where `GRAINSTORE_REQUIRE` names `nvrtc`, that fails the test.
pub(crate) fn on_nvrtc(test: &str, body: impl Fn(&CudaBackend)) {
    for nvrtc in nvrtcs() {
        let backend = compiler(nvrtc);
        match backend.toolchain(&hopper()) {
            Ok(_) => body(&backend),
            Err(missing @ BackendError::Missing { .. }) => {
                not_run(test, "nvrtc", &missing.to_string());
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Says that a test did not run, and why; or fails it, where it had to run. What is missing is a
/// compiler, `nvrtc` or `cc`: no test outside the battery needs a GPU, whose name would be `cuda`.
pub(crate) fn not_run(test: &str, missing: &str, reason: &str) {
    let required = env::var("GRAINSTORE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == missing), "{test}: {reason}");
    say(&format!("not run: {test}: {reason}"));
}

/// Runs one test of this test binary in a process of its own, with these variables. There
/// [`is_child`] is true, and what is asserted there fails here.
pub(crate) fn in_child(test: &str, variables: &[(&str, &str)]) -> Output {
    in_child_at(&env::current_dir().unwrap(), test, variables)
}

/// The same with this as the process's current folder.
pub(crate) fn in_child_at(folder: &Path, test: &str, variables: &[(&str, &str)]) -> Output {
    let output = Command::new(env::current_exe().unwrap())
        .current_dir(folder)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("GRAINSTORE_TEST_CHILD", "1")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{test} failed in its own process ({}):\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Passes on what a child says that it did not run.
pub(crate) fn print_output(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| line.starts_with("not run: ")).for_each(say);
}

/// Past the test harness, which keeps what tests print to itself when they pass.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

pub(crate) fn is_child() -> bool {
    env::var_os("GRAINSTORE_TEST_CHILD").is_some()
}
