//! Launches by wgpu: buffers, a bind group, a pass.

use std::fmt::Display;

use grainstore_wgpu::WgpuModule;
use wgpu::util::{BufferInitDescriptor, DeviceExt};
use wgpu::{
    BindGroupDescriptor, BindGroupEntry, Buffer, BufferDescriptor, BufferUsages, ComputePipeline,
    Device, PollType, Queue,
};

use crate::CaseError;
use crate::gpu::{Gpu, Plain};

/// The modules of a kernel, on one device.
#[derive(Debug)]
pub struct WgpuSession<'a> {
    modules: Vec<&'a WgpuModule>,
    device: &'a Device,
    queue: &'a Queue,
}

fn failed(call: &'static str, error: &dyn Display) -> CaseError {
    CaseError::Driver { call, message: error.to_string() }
}

impl<'a> WgpuSession<'a> {
    /// A session with these modules, of one device: one, or one for each function of the kernel.
    ///
    /// # Errors
    /// Where there is no module.
    pub fn new(modules: Vec<&'a WgpuModule>) -> Result<Self, CaseError> {
        let first = modules.first().ok_or_else(|| failed("a session", &"it has no module"))?;
        Ok(Self { device: first.device(), queue: first.queue(), modules })
    }

    fn pipeline(&self, function: &str) -> Result<&ComputePipeline, CaseError> {
        let mut missing = None;
        for module in &self.modules {
            match module.compute(function) {
                Ok(pipeline) => return Ok(pipeline),
                Err(error) => missing = Some(error),
            }
        }
        Err(missing.map_or_else(|| failed("a session", &"it has no module"), CaseError::from))
    }

    fn buffer(&self, content: &[u8], usage: BufferUsages) -> Buffer {
        self.device.create_buffer_init(&BufferInitDescriptor {
            label: None,
            contents: content,
            usage,
        })
    }
}

impl Gpu for WgpuSession<'_> {
    type Memory = Buffer;

    fn create(&self, content: &[u8]) -> Result<Buffer, CaseError> {
        Ok(self.buffer(content, BufferUsages::STORAGE | BufferUsages::COPY_SRC))
    }

    fn read(&self, memory: &Buffer, content: &mut [u8]) -> Result<(), CaseError> {
        let result = self.device.create_buffer(&BufferDescriptor {
            label: None,
            size: memory.size(),
            usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(memory, 0, &result, 0, memory.size());
        self.queue.submit([encoder.finish()]);
        result.map_async(wgpu::MapMode::Read, .., |_| {});
        self.device.poll(PollType::wait_indefinitely()).map_err(|error| failed("poll", &error))?;
        let bytes =
            result.get_mapped_range(..).map_err(|error| failed("get_mapped_range", &error))?;
        content.copy_from_slice(&bytes[..content.len()]);
        Ok(())
    }

    unsafe fn enqueue(
        &self,
        function: &str,
        groups: [usize; 3],
        _: [usize; 3],
        arguments: &[Plain<'_, Buffer>],
    ) -> Result<(), CaseError> {
        let pipeline = self.pipeline(function)?;
        let mut numbers = Vec::new();
        let mut buffers = Vec::new();
        for argument in arguments {
            match argument {
                Plain::Number(bytes) => numbers.extend(bytes),
                Plain::Memory(buffer) => buffers.push(*buffer),
            }
        }
        let numbers = self.buffer(&numbers, BufferUsages::UNIFORM);
        let entries: Vec<_> = (0..)
            .zip([&numbers].into_iter().chain(buffers))
            .map(|(binding, buffer)| BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = self.device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[]);
            let [x, y, z] = groups.map(|count| count as u32);
            pass.dispatch_workgroups(x, y, z);
        }
        self.queue.submit([encoder.finish()]);
        Ok(())
    }
}
