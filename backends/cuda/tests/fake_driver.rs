//! What this crate asks of a driver, against a fake one: contexts put back, errors told apart,
//! handles released in order. No GPU is needed, and none is proven to work.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::ffi::c_void;
use std::sync::Arc;

use common::fake::{FIRST, Fake, SECOND, on_fake};
use grainstore_conformance::testing;
use grainstore_cuda::{Code, CudaBackend, Features};
use grainstore_runtime::{Artifact, Backend, BackendError, KernelSpec, Language};

const PTX: &str =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry add_7(\n) { ret; }\n";

/// Needs no compiler but the driver's own.
fn ptx() -> KernelSpec {
    KernelSpec::builder("add", Language::Ptx).source(PTX).entry("add_7").build().unwrap()
}

fn ptx_of(source: &str) -> KernelSpec {
    KernelSpec::builder("add", Language::Ptx).source(source).build().unwrap()
}

fn build(cuda: &CudaBackend, spec: &KernelSpec) -> BackendError {
    cuda.build(&FIRST, spec).unwrap_err()
}

#[test]
fn devices_are_those_of_the_driver() {
    on_fake("devices_are_those_of_the_driver", |fake| {
        let cuda = fake.backend();
        let devices = cuda.devices().unwrap();
        let names: Vec<_> = devices.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["Fake device A", "Fake device B"]);
        assert_eq!(devices[0].driver, "CUDA 12.4");
        assert_eq!((devices[0].id, devices[1].id), (FIRST, SECOND));
        assert_eq!(cuda.uuid(&SECOND).unwrap(), [2; 16]);
        assert_eq!(cuda.target(&FIRST).unwrap().as_str(), "sm_90");
        assert_eq!(cuda.target(&SECOND).unwrap().as_str(), "sm_86");
        let special = fake.builder().features(Features::Architecture).build();
        assert_eq!(special.target(&FIRST).unwrap().as_str(), "sm_90a");
        let portable = fake.builder().code(Code::Ptx).build();
        assert_eq!(portable.target(&FIRST).unwrap().as_str(), "compute_90");
        let other = grainstore::DeviceId::new(grainstore::Family::CUDA, 2);
        let error = cuda.target(&other).unwrap_err().to_string();
        assert_eq!(error, "there is no device CUDA:2; there are: CUDA:0, CUDA:1");
        // Nothing of this needs a context.
        assert_eq!((fake.counts(), cuda.live_handles()), ((0, 0, 0), 0));
    });
}

#[test]
fn a_driver_without_devices_is_no_error() {
    on_fake("a_driver_without_devices_is_no_error", |fake| {
        fake.have_no_device();
        let cuda = fake.backend();
        assert_eq!(cuda.devices().unwrap(), []);
        assert!(matches!(build(&cuda, &ptx()), BackendError::NoDevice { .. }));
    });
}

#[test]
fn ptx_is_assembled_loaded_and_launched() {
    on_fake("ptx_is_assembled_loaded_and_launched", |fake| {
        let cuda = fake.backend();
        let (module, artifact) = cuda.build(&FIRST, &ptx()).unwrap();
        let artifact = artifact.unwrap();
        assert_eq!(artifact.members()[0].name, "kernel.cubin");
        assert_eq!((module.code(), module.kernels()), (Code::Cubin, &["add_7".to_owned()][..]));
        assert_eq!(module.framework().name(), "CUDA/CUBIN");
        let function = module.function("add_7").unwrap();
        assert_eq!(fake.driver.launch(&module, function, &[1, 2]).unwrap(), [8, 9]);
        let error = module.function("add_8").unwrap_err().to_string();
        assert_eq!(error, "there is no entry point `add_8`; there are: add_7");

        // The driver's version is in the key, since the driver made the code.
        let target = cuda.target(&FIRST).unwrap();
        let toolchain = cuda.toolchain_for(&target, &ptx()).unwrap();
        assert_eq!(toolchain.as_str(), "ptx, assembled by CUDA driver 12.4");
        let again = cuda.load(&FIRST, &ptx(), &artifact).unwrap();
        assert_ne!(again.module(), module.module());
        assert_eq!((again.context(), again.device()), (module.context(), 0));
        assert_eq!((fake.counts(), cuda.live_handles()), ((1, 2, 0), 3));
        for module in [module, again] {
            cuda.unload(module).unwrap();
        }
        cuda.destroy_device(&FIRST).unwrap();
        assert_eq!((fake.counts(), cuda.live_handles()), ((0, 0, 0), 0));
    });
}

#[test]
fn a_module_gives_the_functions_of_the_driver_that_loaded_it() {
    on_fake("a_module_gives_the_functions_of_the_driver_that_loaded_it", |fake| {
        let cuda = fake.backend();
        let (module, _) = cuda.build(&FIRST, &ptx()).unwrap();
        let there: *mut c_void = fake.driver.get("cuLaunchKernel");
        let given = module.driver_function(c"cuLaunchKernel").unwrap();
        assert_eq!(given.as_ptr(), there);
        assert_eq!(module.driver_function(c"cuNoSuchFunction"), None);
        // Another copy of the library has its own.
        let copy = Fake::new().unwrap();
        let (elsewhere, _) = copy.backend().build(&FIRST, &ptx()).unwrap();
        assert_ne!(elsewhere.driver_function(c"cuLaunchKernel").unwrap(), given);
    });
}

#[test]
fn portable_kernels_stay_ptx() {
    on_fake("portable_kernels_stay_ptx", |fake| {
        let cuda = fake.builder().code(Code::Ptx).build();
        let (module, artifact) = cuda.build(&FIRST, &ptx()).unwrap();
        assert_eq!(module.framework().name(), "CUDA/PTX");
        let artifact = artifact.unwrap();
        assert_eq!(artifact.binary(), PTX.as_bytes());
        let loaded = cuda.load(&FIRST, &ptx(), &artifact).unwrap();
        assert_eq!(loaded.code(), Code::Ptx);
    });
}

#[test]
fn cuda_cpp_is_compiled_loaded_and_launched() {
    let test = "cuda_cpp_is_compiled_loaded_and_launched";
    on_fake(test, |fake| {
        let cuda = fake.backend();
        if let Err(missing) = cuda.toolchain(&common::hopper()) {
            // What is ready-made would run without it.
            return testing::not_run(test, "nvrtc", missing);
        }
        if cuda.toolchain(&common::hopper()).unwrap().as_str().starts_with("no nvrtc") {
            return testing::not_run(test, "nvrtc", "there is no NVRTC");
        }
        let source = "extern \"C\" __global__ void add_3(const int *in, int *out) \
                      { out[blockIdx.x] = in[blockIdx.x] + 3; }";
        let spec = common::spec(source).entry("add_3").build().unwrap();
        let (module, artifact) = cuda.build(&FIRST, &spec).unwrap();
        let function = module.function("add_3").unwrap();
        assert_eq!(fake.driver.launch(&module, function, &[1]).unwrap(), [4]);
        assert!(cuda.load(&SECOND, &spec, artifact.as_ref().unwrap()).is_err(), "another target");
        let mut shifted = vec![0];
        shifted.extend_from_slice(artifact.as_ref().unwrap().binary());
        // Bytes in a store's buffer may begin anywhere.
        let label = format!("sm_90 | {}", cuda.toolchain(&common::hopper()).unwrap().as_str());
        let names = artifact.as_ref().unwrap().member("names").unwrap().to_vec();
        let artifact = Artifact::new("kernel.cubin", bytes_from(&shifted, 1))
            .with_member("names", names)
            .sealed(&label);
        cuda.load(&FIRST, &spec, &artifact).unwrap();
    });
}

fn bytes_from(bytes: &[u8], start: usize) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(bytes).slice(start..)
}

#[test]
fn the_threads_context_is_put_back_whatever_happens() {
    on_fake("the_threads_context_is_put_back_whatever_happens", |fake| {
        let cuda = fake.backend();
        let own = {
            cuda.devices().unwrap();
            fake.application_context(1)
        };
        let unchanged = || assert_eq!((fake.depth(), fake.current()), (1, own));
        let (module, artifact) = cuda.build(&FIRST, &ptx()).unwrap();
        unchanged();
        assert_ne!(module.context(), own);
        for call in ["cuModuleLoadDataEx", "cuLinkAddData", "cuLinkComplete", "cuModuleGetFunction"]
        {
            fake.fail_next(call, 2);
            build(&cuda, &ptx());
            unchanged();
        }
        for call in ["cuCtxPushCurrent", "cuCtxPopCurrent"] {
            fake.fail_next(call, 1);
            let _ = cuda.load(&FIRST, &ptx(), artifact.as_ref().unwrap());
            unchanged();
        }
        fake.fail_next("cuModuleUnload", 2);
        cuda.unload(module).unwrap_err();
        cuda.destroy_device(&FIRST).unwrap();
        unchanged();
    });
}

#[test]
fn errors_are_told_apart() {
    on_fake("errors_are_told_apart", |fake| {
        let cuda = fake.backend();
        let error = build(&cuda, &ptx_of(".version 8.0 nonsense"));
        match &error {
            BackendError::Compile { log } => {
                assert!(log.contains("ptxas: nonsense in line 1"), "{log}");
            }
            other => panic!("{other}"),
        }
        let error = build(&cuda, &ptx_of(".version 99.0"));
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("not newer than it"), "{error}");

        let artifact = cuda.build(&FIRST, &ptx()).unwrap().1.unwrap();
        let load = |code: i32| {
            fake.fail_next("cuModuleLoadDataEx", code);
            cuda.load(&FIRST, &ptx(), &artifact).unwrap_err()
        };
        for code in [200, 209, 218, 300] {
            assert!(matches!(load(code), BackendError::InvalidArtifact { .. }), "{code}");
        }
        for code in [700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 214, 220, 226, 999] {
            assert!(matches!(load(code), BackendError::DeviceLost { .. }), "{code}");
        }
        for code in [1, 2, 3, 201, 701] {
            assert!(matches!(load(code), BackendError::Failed { .. }), "{code}");
        }
        assert!(matches!(load(221), BackendError::Missing { .. }));
        let error = load(2).to_string();
        assert_eq!(error, "cuModuleLoadDataEx failed: CUDA_ERROR_OUT_OF_MEMORY (2)");
        let other = KernelSpec::builder("add", Language::Ptx).source(PTX).entry("none");
        let error = cuda.load(&FIRST, &other.build().unwrap(), &artifact).unwrap_err();
        assert!(matches!(error, BackendError::NoEntryPoint { .. }), "{error}");
        // None of them leaves a module.
        assert_eq!((fake.counts(), cuda.live_handles()), ((1, 0, 0), 1));
    });
}

#[test]
fn a_broken_artifact_never_reaches_the_driver() {
    on_fake("a_broken_artifact_never_reaches_the_driver", |fake| {
        let cuda = fake.backend();
        let artifact = cuda.build(&FIRST, &ptx()).unwrap().1.unwrap();
        let bytes = artifact.binary().to_vec();
        let others = |first: Vec<u8>| {
            artifact.members()[1..]
                .iter()
                .fold(Artifact::new("kernel.cubin", first), |made, member| {
                    made.with_member(member.name.clone(), member.bytes.clone())
                })
        };
        let before = fake.calls();
        let refuse = |artifact: Artifact| match cuda.load(&FIRST, &ptx(), &artifact) {
            Err(BackendError::InvalidArtifact { .. }) => {}
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was loaded"),
        };
        for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            refuse(others(bytes[..length].to_vec()));
            refuse(Artifact::new("kernel.cubin", bytes[..length].to_vec()));
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            refuse(others(flipped));
        }
        refuse(Artifact::new("kernel.cubin", bytes.clone()).sealed("another device"));
        // Sealed for the right label and yet none of ours.
        let label = "sm_90 | ptx, assembled by CUDA driver 12.4";
        refuse(Artifact::new("kernel.cubin", bytes.clone()).sealed(label));
        refuse(Artifact::new("kernel.exe", bytes.clone()).with_member("names", "").sealed(label));
        refuse(Artifact::new("kernel.cubin", "").with_member("names", "").sealed(label));
        assert_eq!(fake.calls(), before);
        cuda.load(&FIRST, &ptx(), &others(bytes)).unwrap();
    });
}

#[test]
fn a_module_outlives_its_device() {
    on_fake("a_module_outlives_its_device", |fake| {
        let cuda = fake.backend();
        let (old, _) = cuda.build(&FIRST, &ptx()).unwrap();
        cuda.destroy_device(&FIRST).unwrap();
        // Twice is no harm, and neither is a device that was never used.
        cuda.destroy_device(&FIRST).unwrap();
        cuda.destroy_device(&SECOND).unwrap();
        assert_eq!(fake.counts(), (1, 1, 0), "the module holds its context");
        let function = old.function("add_7").unwrap();
        assert_eq!(fake.driver.launch(&old, function, &[1]).unwrap(), [8]);
        let (new, _) = cuda.build(&FIRST, &ptx()).unwrap();
        cuda.unload(old).unwrap();
        drop(new);
        assert_eq!(fake.counts(), (1, 0, 0));
        cuda.destroy_device(&FIRST).unwrap();
        assert_eq!((fake.counts(), cuda.live_handles()), ((0, 0, 0), 0));
    });
}

#[test]
fn a_backend_that_is_dropped_releases_what_it_has() {
    on_fake("a_backend_that_is_dropped_releases_what_it_has", |fake| {
        let cuda = fake.backend();
        let (module, _) = cuda.build(&FIRST, &ptx()).unwrap();
        drop(cuda);
        assert_eq!(fake.counts(), (1, 1, 0));
        drop(module);
        assert_eq!(fake.counts(), (0, 0, 0));
    });
}

#[test]
fn a_lost_device_is_made_anew() {
    on_fake("a_lost_device_is_made_anew", |fake| {
        let cuda = fake.backend();
        let (module, artifact) = cuda.build(&FIRST, &ptx()).unwrap();
        let (abandoned, _) = cuda.build(&FIRST, &ptx()).unwrap();
        let (other, _) = cuda.build(&SECOND, &ptx()).unwrap();
        fake.lose(0);
        let error = cuda.load(&FIRST, &ptx(), artifact.as_ref().unwrap()).unwrap_err();
        assert!(matches!(error, BackendError::DeviceLost { .. }), "{error}");
        assert!(error.to_string().contains("an illegal memory access"), "{error}");
        std::mem::forget(abandoned);
        cuda.forget_device(&FIRST).unwrap();
        // What was in it is gone, and counted so; the other device goes on.
        assert_eq!((fake.counts(), cuda.live_handles()), ((1, 1, 0), 2));
        let (new, _) = cuda.build(&FIRST, &ptx()).unwrap();
        let function = new.function("add_7").unwrap();
        assert_eq!(fake.driver.launch(&new, function, &[1]).unwrap(), [8]);
        // A handle from before asks nothing of the driver, and its release is none.
        let error = module.function("add_7").unwrap_err();
        assert!(matches!(error, BackendError::DeviceLost { .. }), "{error}");
        cuda.unload(module).unwrap();
        assert_eq!(fake.counts(), (2, 2, 0));
        cuda.unload(new).unwrap();
        cuda.unload(other).unwrap();
        cuda.destroy_device(&FIRST).unwrap();
        cuda.destroy_device(&SECOND).unwrap();
        assert_eq!((fake.counts(), cuda.live_handles()), ((0, 0, 0), 0));
    });
}

#[test]
fn a_device_that_is_given_up_and_not_lost_stays_with_its_modules() {
    on_fake("a_device_that_is_given_up_and_not_lost_stays_with_its_modules", |fake| {
        let cuda = fake.backend();
        let (module, _) = cuda.build(&FIRST, &ptx()).unwrap();
        cuda.forget_device(&FIRST).unwrap();
        let function = module.function("add_7").unwrap();
        assert_eq!(fake.driver.launch(&module, function, &[1]).unwrap(), [8]);
        drop(module);
        assert_eq!((fake.counts(), cuda.live_handles()), ((0, 0, 0), 0));
    });
}

#[test]
fn the_applications_own_context_is_used_and_left_alone() {
    on_fake("the_applications_own_context_is_used_and_left_alone", |fake| {
        fake.backend().devices().unwrap();
        let own = fake.application_context(1);
        // SAFETY: the context lives as long as the fake.
        let cuda = unsafe { fake.builder().build_in(own) }.unwrap();
        let ids: Vec<_> = cuda.devices().unwrap().iter().map(|device| device.id).collect();
        assert_eq!(ids, [SECOND]);
        let (module, _) = cuda.build(&SECOND, &ptx()).unwrap();
        assert_eq!((module.context(), module.device()), (own, 1));
        assert_eq!((fake.counts(), cuda.live_handles()), ((1, 1, 0), 1));
        assert!(matches!(build(&cuda, &ptx()), BackendError::NoDevice { .. }));
        cuda.forget_device(&SECOND).unwrap();
        cuda.destroy_device(&SECOND).unwrap();
        cuda.unload(module).unwrap();
        drop(cuda);
        assert_eq!((fake.counts(), fake.current()), ((1, 0, 0), own));
    });
}

#[test]
fn a_driver_that_has_gone_first_is_no_error() {
    on_fake("a_driver_that_has_gone_first_is_no_error", |fake| {
        let cuda = fake.backend();
        let (module, _) = cuda.build(&FIRST, &ptx()).unwrap();
        fake.fail_next("cuModuleUnload", 4);
        cuda.unload(module).unwrap();
        fake.fail_next("cuDevicePrimaryCtxRelease", 4);
        cuda.destroy_device(&FIRST).unwrap();
        assert_eq!(cuda.live_handles(), 0);
    });
}

#[test]
fn many_threads_share_one_context() {
    on_fake("many_threads_share_one_context", |fake| {
        let cuda = Arc::new(fake.backend());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let (module, _) = cuda.build(&FIRST, &ptx()).unwrap();
                        let function = module.function("add_7").unwrap();
                        assert_eq!(fake.driver.launch(&module, function, &[3]).unwrap(), [10]);
                        cuda.unload(module).unwrap();
                        assert_eq!(fake.depth(), 0);
                    }
                });
            }
        });
        cuda.destroy_device(&FIRST).unwrap();
        assert_eq!((fake.counts(), cuda.live_handles()), ((0, 0, 0), 0));
    });
}

#[test]
fn without_nvrtc_the_ready_made_runs() {
    on_fake("without_nvrtc_the_ready_made_runs", |fake: &Fake| {
        let cuda = fake.builder().nvrtc("/nowhere/libnvrtc.so").build();
        let target = cuda.target(&FIRST).unwrap();
        assert_eq!(target.as_str(), "sm_90");
        assert_eq!(cuda.toolchain(&target).unwrap().as_str(), "no nvrtc; CUDA driver 12.4");
        cuda.build(&FIRST, &ptx()).unwrap();
        for error in [
            build(&cuda, &common::saxpy()),
            cuda.toolchain_for(&target, &common::saxpy()).unwrap_err(),
        ] {
            assert!(matches!(error, BackendError::Missing { .. }), "{error}");
        }
    });
}
