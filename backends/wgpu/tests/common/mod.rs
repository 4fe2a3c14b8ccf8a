//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use grainstore::{DeviceId, Family};
use grainstore_conformance::testing;
use grainstore_runtime::{KernelSpec, KernelSpecBuilder, Language};
use grainstore_wgpu::{WgpuBackend, WgpuModule};
use wgpu::util::{BufferInitDescriptor, DeviceExt};
use wgpu::{
    Adapter, Backends, BindGroupDescriptor, BindGroupEntry, BufferDescriptor, BufferUsages, Device,
    DeviceDescriptor, Features, Instance, InstanceDescriptor, PollType, Queue,
};

pub(crate) const DEVICE: DeviceId = DeviceId::new(Family::WGPU, 0);

/// Adds `step` to each number.
pub(crate) const ADD: &str = "\
override step: u32 = 1;
@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&numbers) {
        numbers[id.x] += step;
    }
}
";

pub(crate) fn spec(source: &str) -> KernelSpecBuilder {
    KernelSpec::builder("kernel", Language::Wgsl).source(source)
}

pub(crate) fn add(step: u32) -> KernelSpec {
    spec(ADD).entry("add").constant("step", step.to_string()).build().unwrap()
}

pub(crate) fn instance(backends: Backends) -> Instance {
    let descriptor = InstanceDescriptor::new_without_display_handle();
    Instance::new(InstanceDescriptor { backends, ..descriptor })
}

/// The adapters of these backends; none where there is no driver.
pub(crate) fn adapters(backends: Backends) -> Vec<Adapter> {
    pollster::block_on(instance(backends).enumerate_adapters(backends))
}

/// A device as an application makes it, with a pipeline cache where there is one.
pub(crate) fn device(adapter: &Adapter) -> (Device, Queue) {
    let descriptor = DeviceDescriptor {
        required_features: adapter.features() & Features::PIPELINE_CACHE,
        required_limits: adapter.limits(),
        ..DeviceDescriptor::default()
    };
    pollster::block_on(adapter.request_device(&descriptor)).unwrap()
}

/// The APIs that wgpu speaks to on this system, as far as this crate's tests know them.
const APIS: &[Backends] = if cfg!(target_vendor = "apple") {
    &[Backends::METAL]
} else if cfg!(windows) {
    &[Backends::DX12, Backends::VULKAN]
} else {
    &[Backends::VULKAN, Backends::GL]
};

/// Runs the body on a device of each of these APIs.
///
/// Where one of them has no device the body does not run there, and says so; where
/// `GRAINSTORE_REQUIRE` names `wgpu`, no device at all fails the test.
pub(crate) fn on_wgpu(test: &str, body: impl Fn(&WgpuBackend, &Device)) {
    let mut ran = false;
    for backends in APIS {
        let Some(adapter) = adapters(*backends).into_iter().next() else {
            let missing = format!("wgpu over {backends:?}");
            testing::not_run(test, &missing, format!("{missing} finds no adapter"));
            continue;
        };
        let (device, queue) = device(&adapter);
        body(&WgpuBackend::builder().device(device.clone(), queue).build(), &device);
        ran = true;
    }
    if !ran {
        testing::not_run(test, "wgpu", "wgpu finds no adapter");
    }
}

/// Launches a function that has one buffer of numbers, and gives what is in it then.
pub(crate) fn launch(module: &WgpuModule, function: &str, numbers: &[u32]) -> Vec<u32> {
    let (device, queue) = (module.device(), module.queue());
    let pipeline = module.compute(function).unwrap();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let buffer = device.create_buffer_init(&BufferInitDescriptor {
        label: None,
        contents: &bytes,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
    });
    let result = device.create_buffer(&BufferDescriptor {
        label: None,
        size: buffer.size(),
        usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let group = device.create_bind_group(&BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(numbers.len().div_ceil(64) as u32, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&buffer, 0, &result, 0, buffer.size());
    queue.submit([encoder.finish()]);
    result.slice(..).map_async(wgpu::MapMode::Read, Result::unwrap);
    device.poll(PollType::wait_indefinitely()).unwrap();
    let bytes = result.slice(..).get_mapped_range().unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}
