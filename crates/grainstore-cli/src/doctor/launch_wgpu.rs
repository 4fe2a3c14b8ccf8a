//! A launch by wgpu: three buffers, a bind group, a pass.

use grainstore::DeviceId;
use grainstore_runtime::{Backend, BackendError};
use grainstore_wgpu::WgpuBackend;
use wgpu::util::{BufferInitDescriptor, DeviceExt};
use wgpu::{
    BindGroupDescriptor, BindGroupEntry, BufferDescriptor, BufferUsages, MapMode, PollType,
};

use super::examine::{COUNT, FACTOR, Launch};

impl Launch for WgpuBackend {
    const SOURCE: &'static str = "\
@group(0) @binding(0) var<uniform> a: f32;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] = a * x[id.x] + y[id.x]; }
}
";

    fn launch(
        &self,
        _: &DeviceId,
        module: &<Self as Backend>::Module,
        x: &[f32; COUNT],
        y: &mut [f32; COUNT],
    ) -> Result<(), BackendError> {
        let (device, queue) = (module.device(), module.queue());
        let pipeline = module.compute("saxpy")?;
        let upload = |numbers: &[f32], usage| {
            let contents: Vec<u8> =
                numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            device.create_buffer_init(&BufferInitDescriptor {
                label: None,
                contents: &contents,
                usage,
            })
        };
        let buffers = [
            upload(&[FACTOR], BufferUsages::UNIFORM),
            upload(x, BufferUsages::STORAGE),
            upload(y, BufferUsages::STORAGE | BufferUsages::COPY_SRC),
        ];
        let result = device.create_buffer(&BufferDescriptor {
            label: None,
            size: size_of_val(y) as u64,
            usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let entries: Vec<_> = (0..)
            .zip(&buffers)
            .map(|(binding, buffer)| BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let mut encoder = device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(COUNT.div_ceil(64) as u32, 1, 1);
        }
        encoder.copy_buffer_to_buffer(&buffers[2], 0, &result, 0, result.size());
        queue.submit([encoder.finish()]);
        result.map_async(MapMode::Read, .., |_| {});
        device
            .poll(PollType::wait_indefinitely())
            .map_err(|error| BackendError::failed("poll", error))?;
        let bytes = result
            .get_mapped_range(..)
            .map_err(|error| BackendError::failed("get_mapped_range", error))?;
        for (number, bytes) in y.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *number = f32::from_ne_bytes(*bytes);
        }
        Ok(())
    }
}
