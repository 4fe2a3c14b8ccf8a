//! Every kernel of the examples' manifest, in every variant, compiled through the cache, launched,
//! and compared with a plain Rust computation. One test for each kernel on each backend.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test, as it should")]

mod manifest;
#[cfg(feature = "cuda")]
mod stand_in;

use std::fs;

use grainstore_examples::{Case, CaseError, Launcher, OpenClSession, absent};
use grainstore_host::{HostBackend, HostModule};
use grainstore_opencl::{OpenClBackend, OpenClModule};
use grainstore_runtime::{BackendError, Device, Kernel, Language, Runtime, RuntimeBuilder};

use manifest::Artifact;

/// Compiles and launches all that the manifest has of one kernel on one backend.
fn launch(backend: &str, builder: RuntimeBuilder, case: &str) {
    let Some((runtime, devices)) = devices(backend, builder) else { return };
    let artifacts = manifest::artifacts_of(case, language(&runtime, &devices[0]));
    for device in &devices {
        launch_all(&runtime, device, &artifacts, |_, _| ());
    }
    runtime.shutdown().unwrap();
}

/// The runtime and the devices of the one backend in it, if there are any and a compiler for them.
fn devices(backend: &str, builder: RuntimeBuilder) -> Option<(Runtime, Vec<Device>)> {
    let runtime = builder.build().unwrap();
    let devices = match runtime.find_backend(backend).unwrap().devices() {
        Ok(devices) if devices.is_empty() => {
            absent(backend, format!("{backend}: it has no device")).unwrap();
            return None;
        }
        Ok(devices) => devices,
        Err(why) => {
            absent(backend, why).unwrap();
            return None;
        }
    };
    let any = &manifest::artifacts(language(&runtime, &devices[0]))[0].specs[0];
    if let Err(why) = runtime.key(&devices[0], any) {
        let missing = matches!(why.backend_error(), Some(BackendError::Missing { .. }));
        assert!(missing, "{why}");
        absent(backend, why).unwrap();
        return None;
    }
    Some((runtime, devices))
}

/// The language that the examples have for a device.
fn language(runtime: &Runtime, device: &Device) -> Language {
    // Where the backend takes another as well, that is what one of these is made into.
    let sources = [Language::C, Language::OpenClC, Language::CudaCpp, Language::Wgsl];
    let taken = runtime.backend_of(device).unwrap().languages();
    *taken.iter().find(|language| sources.contains(language)).unwrap()
}

fn host() -> RuntimeBuilder {
    Runtime::builder().backend(HostBackend::new())
}

fn opencl() -> RuntimeBuilder {
    Runtime::builder().backend(OpenClBackend::new())
}

#[cfg(feature = "cuda")]
fn cuda() -> RuntimeBuilder {
    Runtime::builder().backend(grainstore_cuda::CudaBackend::new())
}

#[cfg(feature = "vulkan")]
fn vulkan() -> RuntimeBuilder {
    Runtime::builder().backend(grainstore_vulkan::VulkanBackend::new())
}

/// The first adapter of each API that wgpu speaks to here.
#[cfg(feature = "wgpu")]
fn wgpu() -> RuntimeBuilder {
    use ::wgpu::{Backends, DeviceDescriptor, Instance, InstanceDescriptor};

    let mut backend = grainstore_wgpu::WgpuBackend::builder();
    for backends in [Backends::VULKAN, Backends::GL, Backends::METAL, Backends::DX12] {
        let descriptor = InstanceDescriptor::new_without_display_handle();
        let instance = Instance::new(InstanceDescriptor { backends, ..descriptor });
        let adapters = pollster::block_on(instance.enumerate_adapters(backends));
        if let Some(adapter) = adapters.first() {
            let required_limits = adapter.limits();
            let descriptor = DeviceDescriptor { required_limits, ..DeviceDescriptor::default() };
            let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).unwrap();
            backend = backend.device(device, queue);
        }
    }
    Runtime::builder().backend(backend.build())
}

/// All of them, also when one is wrong. What is ready to be launched is shown to `ready` first.
fn launch_all(
    runtime: &Runtime,
    device: &Device,
    artifacts: &[Artifact],
    ready: impl Fn(&Artifact, &[Kernel]),
) {
    let mut wrong = Vec::new();
    for artifact in artifacts {
        let name = artifact.specs[0].name();
        let what = format!("{name} {} on {device}", artifact.variant);
        let kernels: Result<Vec<_>, _> =
            artifact.specs.iter().map(|spec| runtime.kernel(device, spec)).collect();
        match kernels.map_err(|error| error.to_string()).and_then(|kernels| {
            ready(artifact, &kernels);
            check(artifact, &kernels)
        }) {
            Ok(done) => println!("{what}: {done}"),
            Err(error) => wrong.push(format!("{what}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(artifact: &Artifact, kernels: &[Kernel]) -> Result<String, String> {
    let launcher = launcher(kernels).map_err(|error| error.to_string())?;
    // SAFETY: The kernels were compiled from the case's sources with the variant's defines.
    let agreement = unsafe { artifact.case.check(&launcher, &artifact.variant) }
        .map_err(|error| error.to_string())?;
    Ok(format!("{} values, {:.0} % of the tolerance", agreement.values, 100.0 * agreement.used))
}

/// A launcher of the kind that these kernels' backend needs.
fn launcher(kernels: &[Kernel]) -> Result<Launcher<'_>, CaseError> {
    if let Some(module) = kernels[0].module::<HostModule>() {
        return Ok(Launcher::Host(module));
    }
    if let Some(module) = kernels[0].module::<OpenClModule>() {
        return Ok(Launcher::OpenCl(OpenClSession::new(module)?));
    }
    #[cfg(feature = "cuda")]
    if let Some(module) = kernels[0].module() {
        return Ok(Launcher::Cuda(grainstore_examples::CudaSession::new(module)?));
    }
    #[cfg(feature = "vulkan")]
    if let Some(modules) = kernels.iter().map(Kernel::module).collect() {
        return Ok(Launcher::Vulkan(grainstore_examples::VulkanSession::new(modules)?));
    }
    #[cfg(feature = "wgpu")]
    if let Some(modules) = kernels.iter().map(Kernel::module).collect() {
        return Ok(Launcher::Wgpu(grainstore_examples::WgpuSession::new(modules)?));
    }
    panic!("no launcher takes {kernels:?}");
}

macro_rules! every_kernel {
    ($($case:ident)*) => {
        mod host {
            $(#[test] fn $case() { super::launch("host", super::host(), stringify!($case)); })*
        }

        mod opencl {
            $(#[test] fn $case() { super::launch("opencl", super::opencl(), stringify!($case)); })*
        }

        #[cfg(feature = "cuda")]
        mod cuda {
            $(#[test] fn $case() { super::launch("cuda", super::cuda(), stringify!($case)); })*
        }

        #[cfg(feature = "cuda")]
        mod cuda_on_the_processor {
            $(#[test] fn $case() { super::stand_in::launch(stringify!($case)); })*
        }

        #[cfg(feature = "vulkan")]
        mod vulkan {
            $(#[test] fn $case() { super::launch("vulkan", super::vulkan(), stringify!($case)); })*
        }

        #[cfg(feature = "wgpu")]
        mod wgpu {
            $(#[test] fn $case() { super::launch("wgpu", super::wgpu(), stringify!($case)); })*
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
/// sources in other languages know it all the same.
#[test]
fn doubles_on_an_opencl_device_that_has_them() {
    let Some((runtime, devices)) = devices("opencl", opencl()) else { return };
    let device = &devices[0];
    let artifacts = manifest::doubles("cl");
    let floats = manifest::artifacts(Language::OpenClC);
    let kernel = runtime.kernel(device, &floats[0].specs[0]).unwrap();
    let native = opencl3::device::Device::new(kernel.module::<OpenClModule>().unwrap().device());
    if native.extensions().unwrap().contains("cl_khr_fp64") {
        drop(kernel);
        launch_all(&runtime, device, &artifacts, |_, _| ());
    } else {
        println!("not run: {device} has no double precision");
    }
}

#[cfg(feature = "cuda")]
#[test]
fn doubles_on_a_cuda_device() {
    let Some((runtime, devices)) = devices("cuda", cuda()) else { return };
    launch_all(&runtime, &devices[0], &manifest::doubles("cu"), |_, _| ());
}

#[test]
fn the_manifest_makes_at_least_forty_artifacts_for_each_backend() {
    for language in [Language::C, Language::OpenClC, Language::CudaCpp, Language::Wgsl] {
        let artifacts = manifest::artifacts(language);
        let count: usize = artifacts.iter().map(|artifact| artifact.specs.len()).sum();
        assert!(count >= 40, "{count} in {language}");
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
            let (case, _) = manifest::case_of(stem);
            let text = fs::read(&path).unwrap();
            let named = manifest::artifacts(language).iter().any(|artifact| {
                artifact.case.name() == case.name()
                    && artifact.specs.iter().any(|spec| spec.source() == text)
            });
            assert!(named, "{} is in no [[kernel]]", path.display());
        }
    }
}
