//! From an artifact back to a kernel, also in another process, and what is refused on the way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{check_saxpy, in_child, launch, on_opencl, saxpy, spec};
use grainstore_conformance::testing::is_child;
use grainstore_opencl::OpenClBackend;
use grainstore_runtime::{Artifact, Backend, BackendError};

#[test]
fn an_artifact_is_loaded_in_another_process() {
    let test = "an_artifact_is_loaded_in_another_process";
    if let Some(folder) = std::env::var_os("LOAD_FROM") {
        let read = |name| std::fs::read(std::path::Path::new(&folder).join(name)).unwrap();
        let artifact =
            Artifact::new("kernel.bin", read("kernel.bin")).with_member("seal", read("seal"));
        let opencl = OpenClBackend::new();
        let device = opencl.devices().unwrap()[0].id;
        let module = opencl.load(&device, &saxpy(), &artifact).unwrap();
        assert_eq!(module.kernels(), ["saxpy"]);
        check_saxpy(&module);
        return;
    }
    on_opencl(test, |opencl, device| {
        let artifact = opencl.build(&device, &saxpy()).unwrap().1.unwrap();
        let folder = tempfile::tempdir().unwrap();
        for member in artifact.members() {
            std::fs::write(folder.path().join(&member.name), &member.bytes).unwrap();
        }
        in_child(test, &[("LOAD_FROM", folder.path().to_str().unwrap())]);
    });
}

#[test]
fn an_artifact_with_headers_is_loaded_and_equal_bytes_are_two_modules() {
    let test = "an_artifact_with_headers_is_loaded_and_equal_bytes_are_two_modules";
    on_opencl(test, |opencl, device| {
        let source = "#include \"h.h\"\nkernel void k(global int *x) { x[0] = VALUE; }";
        let spec = spec(source)
            .header("h.h", "#define VALUE 7")
            .option("-cl-mad-enable")
            .option("-DUNUSED=1")
            .entry("k")
            .build()
            .unwrap();
        let (built, artifact) = opencl.build(&device, &spec).unwrap();
        let artifact = artifact.unwrap();
        let [first, second] = [(); 2].map(|()| opencl.load(&device, &spec, &artifact).unwrap());
        assert_ne!(first.program(), second.program());
        opencl.unload(built).unwrap();
        opencl.unload(first).unwrap();
        assert_eq!(launch(&second, "k", &[0]), [7]);
    });
}

#[test]
fn a_broken_artifact_never_reaches_the_driver() {
    // The process would be gone if it did: drivers abort on such bytes.
    on_opencl("a_broken_artifact_never_reaches_the_driver", |opencl, device| {
        let artifact = opencl.build(&device, &saxpy()).unwrap().1.unwrap();
        let bytes = artifact.binary();
        let seal = artifact.member("seal").unwrap().to_vec();
        let refuse = |artifact: &Artifact| match opencl.load(&device, &saxpy(), artifact) {
            Err(BackendError::InvalidArtifact { reason }) => reason,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was loaded"),
        };
        for length in [0, 1, 100, bytes.len() / 2, bytes.len() - 1] {
            let cut = Artifact::new("kernel.bin", bytes[..length].to_vec());
            assert!(refuse(&cut).contains("no seal"));
            refuse(&cut.with_member("seal", seal.clone()));
        }
        for index in (0..bytes.len()).step_by(997) {
            let mut flipped = bytes.to_vec();
            flipped[index] ^= 1;
            refuse(&Artifact::new("kernel.bin", flipped).with_member("seal", seal.clone()));
        }
        let foreign = Artifact::new("kernel.bin", bytes.to_vec()).sealed("another device");
        assert!(refuse(&foreign).contains("made for `another device`"));
    });
}

#[test]
fn what_the_driver_refuses_is_an_invalid_artifact() {
    let test = "what_the_driver_refuses_is_an_invalid_artifact";
    on_opencl(test, |opencl, device| {
        let target = opencl.target(&device).unwrap();
        let toolchain = opencl.toolchain(&target).unwrap();
        let label = format!("{} | {}", target.as_str(), toolchain.as_str());
        for bytes in [&b""[..], b"garbage that no driver takes for a program of its own"] {
            let artifact = Artifact::new("kernel.bin", bytes).sealed(&label);
            let error = opencl.load(&device, &saxpy(), &artifact).unwrap_err();
            assert!(matches!(error, BackendError::InvalidArtifact { .. }), "{error}");
            assert!(error.to_string().contains("clCreateProgramWithBinary: CL_"), "{error}");
        }
    });
}

#[test]
fn a_missing_entry_point_is_no_fault_of_the_artifact() {
    on_opencl("a_missing_entry_point_is_no_fault_of_the_artifact", |opencl, device| {
        let artifact = opencl.build(&device, &saxpy()).unwrap().1.unwrap();
        let other = spec(common::SAXPY).entry("other").build().unwrap();
        let error = opencl.load(&device, &other, &artifact).unwrap_err();
        assert!(matches!(error, BackendError::NoEntryPoint { .. }), "{error}");
    });
}

#[test]
fn the_toolchain_holds_the_variables_that_steer_the_compiler() {
    let test = "the_toolchain_holds_the_variables_that_steer_the_compiler";
    if !is_child() {
        in_child(test, &[("POCL_WORK_GROUP_METHOD", "loopvec")]);
        return;
    }
    on_opencl(test, |opencl, device| {
        let toolchain = opencl.toolchain(&opencl.target(&device).unwrap()).unwrap();
        let text = toolchain.as_str();
        assert!(text.contains("POCL_WORK_GROUP_METHOD=loopvec"), "{text}");
        assert!(!text.contains("POCL_CACHE_DIR"), "{text}");
    });
}

#[test]
fn code_for_a_local_size_is_in_the_binary_where_pocl_is_told_so() {
    let test = "code_for_a_local_size_is_in_the_binary_where_pocl_is_told_so";
    let size = "64-1-1-goffs0-smallgrid";
    if !is_child() {
        return in_child(test, &[("POCL_BINARY_SPECIALIZE_WG", size)]);
    }
    on_opencl(test, |opencl, device| {
        let target = opencl.target(&device).unwrap();
        if !target.as_str().starts_with("Portable Computing Language") {
            return common::not_run(test, "the first driver here is not PoCL");
        }
        // It adds code and changes none, so artifacts are good with and without it.
        let toolchain = opencl.toolchain(&target).unwrap();
        assert!(!toolchain.as_str().contains("SPECIALIZE_WG"), "{}", toolchain.as_str());
        let artifact = opencl.build(&device, &saxpy()).unwrap().1.unwrap();
        let holds = |text: &str| {
            artifact.binary().windows(text.len()).any(|bytes| bytes == text.as_bytes())
        };
        assert!(holds(size));
        assert!(holds("0-0-0/"), "the code for any size is there too");
        check_saxpy(&opencl.load(&device, &saxpy(), &artifact).unwrap());
    });
}
