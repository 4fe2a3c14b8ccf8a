//! A machine without OpenCL: an error that says what would help, never a panic.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{in_child, on_opencl, saxpy};
use grainstore::{DeviceId, Family};
use grainstore_conformance::testing::is_child;
use grainstore_opencl::OpenClBackend;
use grainstore_runtime::{Backend, BackendError};

const DEVICE: DeviceId = DeviceId::new(Family::OPENCL, 0);

/// Every call says the same; here it is.
fn missing(opencl: &OpenClBackend) -> String {
    opencl.destroy_device(&DEVICE).unwrap();
    let errors = [
        opencl.target(&DEVICE).unwrap_err(),
        opencl.build(&DEVICE, &saxpy()).unwrap_err(),
        opencl.devices().unwrap_err(),
    ];
    for error in &errors {
        assert!(matches!(error, BackendError::Missing { .. }), "{error}");
    }
    errors[2].to_string()
}

#[test]
fn a_missing_library_says_what_would_help() {
    let text = missing(&OpenClBackend::builder().library("/nowhere/libOpenCL.so.1").build());
    for word in [
        "`/nowhere/libOpenCL.so.1`",
        "ocl-icd-libopencl1",
        "`GRAINSTORE_OPENCL_LIBRARY`",
        "`OPENCL_DYLIB_PATH`",
    ] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn the_variable_for_the_library_is_heeded() {
    let test = "the_variable_for_the_library_is_heeded";
    if !is_child() {
        let variables = [
            ("GRAINSTORE_OPENCL_LIBRARY", "/nowhere/a.so"),
            ("OPENCL_DYLIB_PATH", "/nowhere/b.so"),
        ];
        in_child(test, &variables);
        return;
    }
    let text = missing(&OpenClBackend::new());
    assert!(text.contains("`/nowhere/a.so`") && !text.contains("b.so"), "{text}");
    let text = missing(&OpenClBackend::builder().library("/nowhere/c.so").build());
    assert!(text.contains("`/nowhere/c.so`") && !text.contains("a.so"), "{text}");
}

#[test]
fn the_fields_own_variable_is_heeded_too() {
    let test = "the_fields_own_variable_is_heeded_too";
    if !is_child() {
        in_child(test, &[("OPENCL_DYLIB_PATH", "/nowhere/a.so;/nowhere/b.so")]);
        return;
    }
    let text = missing(&OpenClBackend::new());
    assert!(text.contains("/nowhere/a.so") && text.contains("/nowhere/b.so"), "{text}");
}

#[test]
fn a_library_that_is_none_has_no_functions() {
    // The C library is surely there, and surely no OpenCL.
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        let error = OpenClBackend::builder().library("libc.so.6").build().devices().unwrap_err();
        assert!(error.to_string().contains("clGetPlatformIDs"), "{error}");
    }
}

#[test]
fn a_missing_driver_says_what_would_help() {
    let test = "a_missing_driver_says_what_would_help";
    if std::env::var_os("NO_DRIVER").is_some() {
        let text = missing(&OpenClBackend::new());
        assert!(text.contains("pocl-opencl-icd") && text.contains("OCL_ICD_VENDORS"), "{text}");
        return;
    }
    // Only where there is a driver that can be hidden.
    on_opencl(test, |_, _| {
        let empty = tempfile::tempdir().unwrap();
        let path = empty.path().to_str().unwrap();
        in_child(test, &[("OCL_ICD_VENDORS", path), ("NO_DRIVER", "1")]);
    });
}
