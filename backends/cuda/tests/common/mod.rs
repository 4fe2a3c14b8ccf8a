//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "the fake driver's functions: see there")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub(crate) mod driver;
pub(crate) mod fake;
pub(crate) mod subject;

use std::env;
use std::path::PathBuf;

use grainstore_conformance::testing;
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
    let builder = CudaBackend::builder().library("/nowhere/libcuda.so.1");
    match nvrtc {
        Some(path) => builder.nvrtc(path).build(),
        None => builder.build(),
    }
}

/// Runs the body with each NVRTC that is here. Without one the body does not run, and says so;
/// where `GRAINSTORE_REQUIRE` names `nvrtc`, that fails the test. (No test outside the battery needs a
/// GPU, whose name would be `cuda`.)
pub(crate) fn on_nvrtc(test: &str, body: impl Fn(&CudaBackend)) {
    for nvrtc in nvrtcs() {
        let backend = compiler(nvrtc);
        match backend.toolchain(&hopper()) {
            Ok(_) => body(&backend),
            Err(missing @ BackendError::Missing { .. }) => {
                testing::not_run(test, "nvrtc", missing);
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Runs one test of this test program in a process of its own, with these variables.
pub(crate) fn in_child(test: &str, variables: &[(&str, &str)]) {
    testing::in_child(test, |command| {
        command.envs(variables.iter().copied());
    });
}
