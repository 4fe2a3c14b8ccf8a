//! A machine without the driver, without NVRTC, or without a part of it: an error that says what would
//! help, never a panic.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{hopper, in_child, saxpy};
use grainstore::{DeviceId, Family};
use grainstore_conformance::testing::{self, is_child};
use grainstore_cuda::CudaBackend;
use grainstore_runtime::{Backend, BackendError};

const DEVICE: DeviceId = DeviceId::new(Family::CUDA, 0);

fn missing(error: BackendError) -> String {
    match error {
        BackendError::Missing { .. } => error.to_string(),
        other => panic!("{other}"),
    }
}

fn nothing() -> CudaBackend {
    CudaBackend::builder().library("/nowhere/libcuda.so.1").nvrtc("/nowhere/libnvrtc.so.12").build()
}

#[test]
fn a_missing_driver_says_what_would_help() {
    let cuda = nothing();
    cuda.destroy_device(&DEVICE).unwrap();
    cuda.forget_device(&DEVICE).unwrap();
    assert_eq!(cuda.live_handles(), 0);
    for error in [
        cuda.devices().unwrap_err(),
        cuda.target(&DEVICE).unwrap_err(),
        cuda.build(&DEVICE, &saxpy()).unwrap_err(),
    ] {
        let text = missing(error);
        for word in ["`/nowhere/libcuda.so.1`", "libcuda1", "`GRAINSTORE_CUDA_LIBRARY`"] {
            assert!(text.contains(word), "{text}");
        }
    }
}

#[test]
fn a_missing_compiler_says_what_would_help() {
    let cuda = nothing();
    for error in
        [cuda.toolchain(&hopper()).unwrap_err(), cuda.compile_for(&hopper(), &saxpy()).unwrap_err()]
    {
        let text = missing(error);
        for word in ["`/nowhere/libnvrtc.so.12`", "nvidia-cuda-nvrtc", "`GRAINSTORE_NVRTC_LIBRARY`"]
        {
            assert!(text.contains(word), "{text}");
        }
    }
}

#[test]
fn the_variables_for_the_libraries_are_heeded() {
    let test = "the_variables_for_the_libraries_are_heeded";
    if !is_child() {
        let variables = [
            ("GRAINSTORE_CUDA_LIBRARY", "/nowhere/a.so"),
            ("GRAINSTORE_NVRTC_LIBRARY", "/nowhere/b.so"),
        ];
        in_child(test, &variables);
        return;
    }
    let cuda = CudaBackend::new();
    assert!(missing(cuda.devices().unwrap_err()).contains("`/nowhere/a.so`"));
    assert!(missing(cuda.toolchain(&hopper()).unwrap_err()).contains("`/nowhere/b.so`"));
}

#[test]
fn the_toolkits_folder_is_looked_into() {
    let test = "the_toolkits_folder_is_looked_into";
    if is_child() {
        CudaBackend::new().toolchain(&hopper()).unwrap();
        return;
    }
    let Some(Some(library)) = common::nvrtcs().into_iter().next() else {
        return testing::not_run(test, "nvrtc", "GRAINSTORE_TEST_NVRTC names no NVRTC");
    };
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(folder_of(library)).unwrap() {
        let lib = folder.path().join("lib64");
        fs::create_dir_all(&lib).unwrap();
        let path = file.unwrap().path();
        link(&path, &lib.join(path.file_name().unwrap()));
    }
    let variables = [
        ("GRAINSTORE_NVRTC_LIBRARY", ""),
        ("CUDA_PATH", folder.path().to_str().unwrap()),
        ("LD_LIBRARY_PATH", ""),
    ];
    in_child(test, &variables);
}

#[test]
fn builtins_that_are_not_beside_it_are_named() {
    let test = "builtins_that_are_not_beside_it_are_named";
    for library in common::nvrtcs() {
        let Some(library) = library else {
            return testing::not_run(test, "nvrtc", "GRAINSTORE_TEST_NVRTC names no NVRTC");
        };
        let folder = tempfile::tempdir().unwrap();
        for file in fs::read_dir(folder_of(library)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.starts_with("libnvrtc.so") {
                // A copy: the library looks beside the file that a link leads to.
                fs::copy(&path, folder.path().join(name)).unwrap();
            }
        }
        let cuda = common::compiler(Some(folder.path().to_owned()));
        let text = missing(cuda.compile_for(&hopper(), &saxpy()).unwrap_err());
        assert!(text.contains("libnvrtc-builtins.so.1") && text.contains("beside"), "{text}");
    }
}

#[test]
fn a_library_that_is_none_has_no_functions() {
    // The C library is surely there, and surely neither of the two.
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        let cuda = CudaBackend::builder().library("libc.so.6").nvrtc("libc.so.6").build();
        assert!(missing(cuda.devices().unwrap_err()).contains("`cuInit`"));
        assert!(missing(cuda.toolchain(&hopper()).unwrap_err()).contains("`nvrtcVersion`"));
    }
}

fn folder_of(library: PathBuf) -> PathBuf {
    if library.is_dir() { library } else { library.parent().unwrap().to_owned() }
}

#[cfg(unix)]
fn link(original: &std::path::Path, link: &std::path::Path) {
    std::os::unix::fs::symlink(original, link).unwrap();
}

#[cfg(not(unix))]
fn link(original: &std::path::Path, link: &std::path::Path) {
    fs::copy(original, link).unwrap();
}
