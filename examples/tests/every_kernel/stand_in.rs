//! CUDA where there is no card. NVRTC compiles as it would for one. In the driver's place is the fake
//! one of the backend's own tests, and what it runs is the same source, compiled for this processor:
//! `device.h` says how, and what that can't show.
//!
//! So what a kernel computes, and that the launcher gives it the right parameters and blocks, is known
//! before there is a card. What NVRTC's code does on one is not.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::{Display, Write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use grainstore_cuda::{CudaBackend, CudaModule};
use grainstore_examples::absent;
use grainstore_runtime::{Backend, BackendError, KernelSpec, Language, Runtime, Target};
use libloading::Library;
use tempfile::TempDir;

use crate::manifest::{self, Artifact};

const DRIVER: &str = include_str!("../../../backends/cuda/tests/fake/cuda.c");

/// Compiles and launches all that the manifest has of one kernel.
pub(crate) fn launch(case: &str) {
    launch_all(&manifest::artifacts_of(case, Language::CudaCpp));
}

fn launch_all(artifacts: &[Artifact]) {
    on_stand_in(|stand_in, runtime| {
        let device = runtime.devices().swap_remove(0);
        super::launch_all(runtime, &device, artifacts, |artifact, kernels| {
            let module = kernels[0].module().unwrap();
            stand_in.run(&artifact.specs[0], module, artifact.specs[0].source());
        });
    });
}

#[test]
fn doubles() {
    launch_all(&manifest::doubles("cu"));
}

/// That it is not blind: without its barriers a kernel is wrong.
#[test]
fn barriers_that_are_missing_are_noticed() {
    on_stand_in(|stand_in, runtime| {
        let device = runtime.devices().swap_remove(0);
        for case in ["reduction", "scan", "matmul", "softmax", "rms_norm", "attention", "conv2d"] {
            let artifact = manifest::artifacts_of(case, Language::CudaCpp).swap_remove(0);
            let spec = &artifact.specs[0];
            let source = str::from_utf8(spec.source()).unwrap();
            for barrier in 0..source.matches(BARRIER).count() {
                let kernel = runtime.kernel(&device, spec).unwrap();
                stand_in.run(spec, kernel.module().unwrap(), without(source, barrier).as_bytes());
                let wrong = super::check(&artifact, &[kernel]).unwrap_err();
                assert!(wrong.contains("value"), "{case} without its barrier {barrier}: {wrong}");
            }
        }
    });
}

#[test]
fn a_call_that_fails_is_told_with_the_errors_name() {
    on_stand_in(|stand_in, runtime| {
        let device = runtime.devices().swap_remove(0);
        let artifact = manifest::artifacts_of("saxpy", Language::CudaCpp).swap_remove(0);
        let kernels = [runtime.kernel(&device, &artifact.specs[0]).unwrap()];
        let source = artifact.specs[0].source();
        stand_in.run(&artifact.specs[0], kernels[0].module().unwrap(), source);
        for (call, code, told) in [
            ("cuMemAlloc", 2, "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2)"),
            ("cuMemcpyHtoD", 700, "cuMemcpyHtoD failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
            ("cuLaunchKernel", 700, "cuLaunchKernel failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
            ("cuMemcpyDtoH", 9999, "an error that this driver has no name for (9999)"),
        ] {
            stand_in.fail_next(call, code);
            let failed = super::check(&artifact, &kernels).unwrap_err();
            assert!(failed.contains(told), "{call}: {failed}");
            super::check(&artifact, &kernels).unwrap();
        }
    });
}

const BARRIER: &str = "__syncthreads();";

fn without(source: &str, barrier: usize) -> String {
    let (at, _) = source.match_indices(BARRIER).nth(barrier).unwrap();
    [&source[..at], &source[at + BARRIER.len()..]].concat()
}

/// Hands the body a driver and a runtime on it, where there are compilers for both.
fn on_stand_in(body: impl FnOnce(&StandIn, &Runtime)) {
    let absent = |compiler, why: &dyn Display| {
        absent(compiler, format!("CUDA C++ on the processor: {why}")).unwrap();
    };
    let stand_in = match StandIn::new() {
        Ok(stand_in) => stand_in,
        Err(why) => return absent("c++", &why),
    };
    let cuda = CudaBackend::builder().library(&stand_in.path).build();
    let any = &manifest::artifacts(Language::CudaCpp)[0].specs[0];
    match cuda.toolchain_for(&Target::new("sm_90"), any) {
        Err(missing @ BackendError::Missing { .. }) => return absent("nvrtc", &missing),
        other => drop(other.unwrap()),
    }
    let runtime = Runtime::builder().backend(cuda).build().unwrap();
    body(&stand_in, &runtime);
    assert_eq!(stand_in.ask(c"fake_allocations"), 0, "memory that was not freed");
    assert_eq!(stand_in.ask(c"fake_depth"), 0, "a context that is still current");
    runtime.shutdown().unwrap();
    assert_eq!(stand_in.ask(c"fake_mistakes"), 0, "wrong calls; see standard error");
}

/// A driver of the test's own: each copy of the library counts for itself.
struct StandIn {
    library: Library,
    path: PathBuf,
    folder: TempDir,
}

impl StandIn {
    /// # Errors
    /// There is no compiler of C or C++.
    fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("cuda.c");
        fs::write(&source, DRIVER).unwrap();
        let path = folder.path().join("libcuda.so.1");
        compile(Command::new("cc").arg("-std=c11"), &source, &path)?;
        // Told now rather than when the first kernel is there.
        let probe = folder.path().join("probe.cpp");
        fs::write(&probe, "").unwrap();
        compile(&mut Command::new("c++"), &probe, &folder.path().join("probe.so"))?;
        // SAFETY: it has no start-up code.
        let library = unsafe { Library::new(&path) }.unwrap();
        Ok(Self { library, path, folder })
    }

    /// What is launched from here on is this source, as the spec would have it compiled.
    fn run(&self, spec: &KernelSpec, module: &CudaModule, source: &[u8]) {
        // A folder for each: what is loaded once is not loaded again under the same name.
        let folder = tempfile::tempdir_in(&self.folder).unwrap().keep();
        fs::write(folder.join("device.h"), include_str!("device.h")).unwrap();
        fs::write(folder.join("kernel.cu"), source).unwrap();
        for (name, content) in spec.headers() {
            fs::write(folder.join(name), content).unwrap();
        }
        let mut text = "#include \"device.h\"\n".to_owned();
        for (name, value) in spec.defines() {
            writeln!(text, "#define {name} {value}").unwrap();
        }
        text += "#include \"kernel.cu\"\n";
        for kernel in module.kernels() {
            writeln!(text, "LAUNCHED({kernel})").unwrap();
        }
        let source = folder.join("launched.cpp");
        fs::write(&source, text).unwrap();
        let library = folder.join("kernels.so");
        compile(Command::new("c++").args(["-std=c++17", "-O1"]), &source, &library).unwrap();
        let path = CString::new(library.to_str().unwrap()).unwrap();
        let take: unsafe extern "C" fn(*const c_char) -> c_int = self.get(c"fake_kernels");
        // SAFETY: it keeps nothing of the text.
        let taken = unsafe { take(path.as_ptr()) };
        assert_eq!(taken, 1, "the fake driver could not load {}", library.display());
    }

    /// The next call of this name fails.
    fn fail_next(&self, call: &str, code: i32) {
        let fail: unsafe extern "C" fn(*const c_char, c_int) = self.get(c"fake_fail");
        let call = CString::new(call).unwrap();
        // SAFETY: it copies the text.
        unsafe { fail(call.as_ptr(), code) };
    }

    fn ask(&self, what: &CStr) -> i32 {
        let ask: unsafe extern "C" fn() -> c_int = self.get(what);
        // SAFETY: every name that is asked is of a function of that type.
        unsafe { ask() }
    }

    fn get<T: Copy>(&self, name: &CStr) -> T {
        // SAFETY: each caller gives the fake's function the type that it has.
        unsafe { *self.library.get::<T>(name).unwrap() }
    }
}

/// Makes a shared library.
fn compile(compiler: &mut Command, source: &Path, library: &Path) -> Result<(), String> {
    let output = compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([library, source])
        .args(["-lpthread", "-ldl"])
        .output()
        .map_err(|error| {
            let name = compiler.get_program().to_string_lossy();
            format!("running CUDA C++ on the processor needs the compiler `{name}`: {error}")
        })?;
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}:\n{log}", source.display());
    Ok(())
}
