//! The usual hello-compute of wgpu, with the cache in front of its pipeline.
//!
//! What is grainstore's is marked; the rest is as it would be without. Run it with
//! `cargo run --package grainstore-wgpu --example saxpy`; it says so where there is no adapter.

use std::error::Error;

use grainstore_runtime::{KernelSpec, Language, Runtime};
use grainstore_wgpu::{WgpuBackend, WgpuModule};
use wgpu::util::{BufferInitDescriptor, DeviceExt};

const SAXPY: &str = "\
override a: f32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) {
        y[id.x] += a * x[id.x];
    }
}
";

fn main() -> Result<(), Box<dyn Error>> {
    pollster::block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = match instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await {
        Ok(adapter) => adapter,
        Err(reason) => {
            println!("not run: {reason}");
            return Ok(());
        }
    };
    let (device, queue) = adapter
        .request_device(&wgpu::DeviceDescriptor {
            // grainstore: what a driver compiled can be kept, where it has this.
            required_features: adapter.features() & wgpu::Features::PIPELINE_CACHE,
            required_limits: adapter.limits(),
            ..Default::default()
        })
        .await?;

    // grainstore: one runtime for the life of the application. Give its builder a `store` as well,
    // and what was compiled is there in the next process.
    let backend = WgpuBackend::builder().device(device.clone(), queue.clone()).build();
    let runtime = Runtime::builder().backend(backend).capacity(64).build()?;
    let on = runtime.devices().remove(0);
    let spec = KernelSpec::builder("saxpy", Language::Wgsl)
        .source(SAXPY)
        .entry("saxpy")
        .constant("a", "2")
        .build()?;

    let x: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let mut y = vec![1.0_f32; x.len()];
    for round in 1..=3 {
        // grainstore: in place of `create_shader_module` and `create_compute_pipeline`. Compiled in
        // the first round, and from memory in the others.
        let kernel = runtime.kernel(&on, &spec)?;
        let module = kernel.module::<WgpuModule>().ok_or("wgpu made no pipeline")?;
        let pipeline = module.compute("saxpy")?;

        y = launch(&device, &queue, pipeline, &x, &y)?;
        let right = x.iter().zip(&y).all(|(x, y)| *y == 1.0 + 2.0 * x * round as f32);
        if !right {
            return Err("wrong numbers".into());
        }
    }
    println!("{}: {} numbers are right", on.name(), y.len());

    // grainstore: before the device goes.
    runtime.shutdown()?;
    Ok(())
}

fn launch(
    device: &wgpu::Device,
    queue: &wgpu::Queue,
    pipeline: &wgpu::ComputePipeline,
    x: &[f32],
    y: &[f32],
) -> Result<Vec<f32>, Box<dyn Error>> {
    let storage = |numbers: &[f32]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        device.create_buffer_init(&BufferInitDescriptor {
            label: None,
            contents: &bytes,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC,
        })
    };
    let (x, y) = (storage(x), storage(y));
    let result = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: y.size(),
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: x.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: y.as_entire_binding() },
        ],
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups((y.size() / 4).div_ceil(64) as u32, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&y, 0, &result, 0, y.size());
    queue.submit([encoder.finish()]);
    result.map_async(wgpu::MapMode::Read, .., |_| {});
    device.poll(wgpu::PollType::wait_indefinitely())?;
    let bytes = result.get_mapped_range(..)?;
    Ok(bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect())
}
