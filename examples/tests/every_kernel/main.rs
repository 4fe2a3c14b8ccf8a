//! Every kernel of the examples' manifest, in every variant, compiled through the cache, launched,
//! and compared with a plain Rust computation. One test for each kernel on each backend.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests, where a panic is a failure

mod manifest;

use std::fs;

use grainstore_examples::{Case, Launcher, Session, absent};
use grainstore_host::{HostBackend, HostModule};
use grainstore_opencl::{OpenClBackend, OpenClModule};
use grainstore_runtime::{Kernel, Language, Runtime};

use manifest::Artifact;

/// Compiles and launches all that the manifest has of one kernel on one backend.
fn launch(backend: &str, case: &str) {
    let case = Case::named(case).expect("the table has it");
    let runtime = Runtime::builder()
        .backend(HostBackend::new())
        .backend(OpenClBackend::new())
        .build()
        .expect("two backends");
    let cache = runtime.find_backend(backend).expect("it was added");
    let device = match cache.devices() {
        Ok(devices) => devices.into_iter().next(),
        Err(why) => return absent(backend, why).unwrap(),
    };
    let Some(device) = device else {
        return absent(backend, "it has no device").unwrap();
    };
    let language = cache.languages()[0];
    let artifacts: Vec<_> = manifest::artifacts(language)
        .into_iter()
        .filter(|artifact| artifact.case.name() == case.name())
        .collect();
    assert!(!artifacts.is_empty(), "the manifest has no {} for {backend}", case.name());
    let mut wrong = Vec::new();
    for artifact in &artifacts {
        let what = format!("{} {} on {device}", artifact.spec.name(), artifact.variant);
        match runtime
            .kernel(&device, &artifact.spec)
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
