//! Every kernel of the examples' manifest, in every variant, compiled through the cache, launched,
//! and compared with a plain Rust computation. One test for each kernel on each backend.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test, as it should")]

mod manifest;

use std::fs;

use grainstore_examples::{Case, Launcher, Session, absent};
use grainstore_host::{HostBackend, HostModule};
use grainstore_opencl::{OpenClBackend, OpenClModule};
use grainstore_runtime::{Device, Kernel, Language, Runtime};

use manifest::Artifact;

/// Compiles and launches all that the manifest has of one kernel on one backend.
fn launch(backend: &str, case: &str) {
    let Some((runtime, device)) = first_device(backend) else { return };
    let language = runtime.backend_of(&device).unwrap().languages()[0];
    let artifacts: Vec<_> = manifest::artifacts(language)
        .into_iter()
        .filter(|artifact| artifact.case.name() == case)
        .collect();
    assert!(!artifacts.is_empty(), "the manifest has no {case} for {backend}");
    launch_all(&runtime, &device, &artifacts);
}

/// A runtime of both backends and the first device of one, if there is any.
fn first_device(backend: &str) -> Option<(Runtime, Device)> {
    let runtime = Runtime::builder()
        .backend(HostBackend::new())
        .backend(OpenClBackend::new())
        .build()
        .unwrap();
    match runtime.find_backend(backend).unwrap().devices() {
        Ok(devices) if devices.is_empty() => {
            absent(backend, format!("{backend} has no device")).unwrap();
        }
        Ok(devices) => return Some((runtime, devices.into_iter().next()?)),
        Err(why) => absent(backend, why).unwrap(),
    }
    None
}

/// All of them, also when one is wrong.
fn launch_all(runtime: &Runtime, device: &Device, artifacts: &[Artifact]) {
    let mut wrong = Vec::new();
    for artifact in artifacts {
        let what = format!("{} {} on {device}", artifact.spec.name(), artifact.variant);
        match runtime
            .kernel(device, &artifact.spec)
            .map_err(|error| error.to_string())
            .and_then(|kernel| check(artifact, &kernel))
        {
            Ok(done) => println!("{what}: {done}"),
            Err(error) => wrong.push(format!("{what}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    runtime.shutdown().unwrap();
}

fn check(artifact: &Artifact, kernel: &Kernel) -> Result<String, String> {
    let launcher = if let Some(module) = kernel.module::<HostModule>() {
        Launcher::Host(module)
    } else {
        let module = kernel.module::<OpenClModule>().expect("one of the two backends made it");
        Launcher::OpenCl(Session::new(module).map_err(|error| error.to_string())?)
    };
    // SAFETY: The kernel was compiled from the case's source with the variant's defines.
    let agreement = unsafe { artifact.case.check(&launcher, &artifact.variant) }
        .map_err(|error| error.to_string())?;
    Ok(format!("{} values, {:.0} % of the tolerance", agreement.values, 100.0 * agreement.used))
}

macro_rules! every_kernel {
    ($($case:ident)*) => {
        mod host {
            $(#[test] fn $case() { super::launch("host", stringify!($case)); })*
        }

        mod opencl {
            $(#[test] fn $case() { super::launch("opencl", stringify!($case)); })*
        }

        #[test]
        fn every_case_has_a_test() {
            let tested = [$(stringify!($case)),*];
            assert_eq!(tested, Case::ALL.map(|case| case.name()));
        }
    };
}

every_kernel! { saxpy reduction scan matmul softmax rms_norm attention conv2d }

/// The manifest asks for double precision on the host alone, for not every OpenCL device has it. The
/// sources in OpenCL C know it all the same.
#[test]
fn doubles_on_an_opencl_device_that_has_them() {
    let Some((runtime, device)) = first_device("opencl") else { return };
    let artifacts = manifest::doubles_in_opencl_c();
    assert!(!artifacts.is_empty());
    let floats = manifest::artifacts(Language::OpenClC);
    let kernel = runtime.kernel(&device, &floats[0].spec).unwrap();
    let native = opencl3::device::Device::new(kernel.module::<OpenClModule>().unwrap().device());
    if native.extensions().unwrap().contains("cl_khr_fp64") {
        drop(kernel);
        launch_all(&runtime, &device, &artifacts);
    } else {
        println!("not run: {device} has no double precision");
    }
}

#[test]
fn the_manifest_makes_at_least_forty_artifacts_for_each_backend() {
    for language in [Language::C, Language::OpenClC] {
        let artifacts = manifest::artifacts(language);
        assert!(artifacts.len() >= 40, "{} in {language}", artifacts.len());
        for case in Case::ALL {
            let named = artifacts.iter().any(|artifact| artifact.case.name() == case.name());
            assert!(named, "the manifest has no {} in {language}", case.name());
        }
    }
}

#[test]
fn every_source_is_in_the_manifest() {
    for file in fs::read_dir(manifest::folder()).unwrap() {
        let path = file.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let extension = path.extension().unwrap().to_str().unwrap();
        if let Some(language) = Language::from_extension(extension) {
            let named = manifest::artifacts(language);
            let named = named.iter().any(|artifact| artifact.case.name() == stem);
            assert!(named, "{} is in no [[kernel]]", path.display());
        }
    }
}
