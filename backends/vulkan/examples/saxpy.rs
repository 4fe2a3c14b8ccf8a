//! `y = a x + y` on a Vulkan device: the kernel through the cache, all the rest as without it.
//!
//!     cargo run --package grainstore-vulkan --example saxpy_vulkan
//!
//! Run it twice: the second time, the kernel comes from the disk.

use std::error::Error;

use grainstore::{DeviceId, Family};
use grainstore_artifacts::ArtifactStore;
use grainstore_runtime::{KernelSpec, Language, Runtime};
use grainstore_vulkan::ash::vk;
use grainstore_vulkan::{VulkanBackend, VulkanDevice, VulkanModule};

const SAXPY: &str = "\
struct Arguments { a: f32, n: u32 }
var<immediate> arguments: Arguments;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arguments.n {
        y[id.x] = arguments.a * x[id.x] + y[id.x];
    }
}
";

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder()
        .backend(VulkanBackend::new())
        .store(ArtifactStore::open_default()?)
        .build()?;
    let device = runtime.device(&DeviceId::new(Family::VULKAN, 0))?;
    println!("{device}");
    let spec = KernelSpec::builder("saxpy", Language::Wgsl).source(SAXPY).entry("saxpy").build()?;

    let x: Vec<f32> = (0..1_000_003).map(|i| (i % 1000) as f32).collect();
    let mut y = vec![1.0_f32; x.len()];
    for _ in 0..2 {
        let (kernel, outcome) = runtime.kernel_with_outcome(&device, &spec)?;
        println!("from {} in {:.1?}", outcome.origin, outcome.elapsed);
        let module = kernel.module::<VulkanModule>().ok_or("Vulkan loads Vulkan modules")?;
        saxpy(module, 2.0, &x, &mut y)?;
    }

    // Small whole numbers: every step is exact.
    let right = x.iter().zip(&y).all(|(x, y)| *y == 4.0 * x + 1.0);
    println!("{} elements are {}", y.len(), if right { "right" } else { "WRONG" });
    runtime.shutdown()?;
    if right { Ok(()) } else { Err("saxpy computed something else".into()) }
}

/// One launch. An application keeps buffers, pools and sets; only the pipeline is the cache's
/// business.
fn saxpy(module: &VulkanModule, a: f32, x: &[f32], y: &mut [f32]) -> Result<(), Box<dyn Error>> {
    let device = module.device();
    let vk = device.device();
    let on_device = [Buffer::new(device, x)?, Buffer::new(device, y)?];
    let n = u32::try_from(y.len())?;
    // SAFETY: The handles are the device's and alive; both buffers are as long as n says, and stay
    // until the work is done. If a step fails, the program ends.
    unsafe {
        let sizes = [vk::DescriptorPoolSize::default()
            .ty(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(2)];
        let create = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        let descriptors = vk.create_descriptor_pool(&create, None)?;
        let allocate = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(descriptors)
            .set_layouts(module.set_layouts());
        let sets = vk.allocate_descriptor_sets(&allocate)?;
        for (binding, buffer) in (0..).zip(&on_device) {
            let range =
                [vk::DescriptorBufferInfo::default().buffer(buffer.raw).range(vk::WHOLE_SIZE)];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(sets[0])
                .dst_binding(binding)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&range);
            vk.update_descriptor_sets(&[write], &[]);
        }

        let create = vk::CommandPoolCreateInfo::default().queue_family_index(device.queue_family());
        let pool = vk.create_command_pool(&create, None)?;
        let allocate =
            vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = vk.allocate_command_buffers(&allocate)?;
        vk.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default())?;
        let (compute, stage) = (vk::PipelineBindPoint::COMPUTE, vk::ShaderStageFlags::COMPUTE);
        vk.cmd_bind_pipeline(commands[0], compute, module.pipeline());
        vk.cmd_bind_descriptor_sets(commands[0], compute, module.layout(), 0, &sets, &[]);
        let arguments = [a.to_ne_bytes(), n.to_ne_bytes()].concat();
        vk.cmd_push_constants(commands[0], module.layout(), stage, 0, &arguments);
        vk.cmd_dispatch(commands[0], n.div_ceil(module.workgroup_size()[0]), 1, 1);
        let to_host = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ);
        let (from, to) = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::HOST);
        let none = vk::DependencyFlags::empty();
        vk.cmd_pipeline_barrier(commands[0], from, to, none, &[to_host], &[], &[]);
        vk.end_command_buffer(commands[0])?;

        let fence = vk.create_fence(&vk::FenceCreateInfo::default(), None)?;
        let work = vk::SubmitInfo::default().command_buffers(&commands);
        // The queue is locked until the end of this statement.
        vk.queue_submit(*device.queue(), &[work], fence)?;
        vk.wait_for_fences(&[fence], true, u64::MAX)?;

        vk.destroy_fence(fence, None);
        vk.destroy_command_pool(pool, None);
        vk.destroy_descriptor_pool(descriptors, None);
    }
    on_device[1].read(y)?;
    Ok(())
}

/// Elements in memory that device and host share.
struct Buffer<'a> {
    device: &'a VulkanDevice,
    raw: vk::Buffer,
    memory: vk::DeviceMemory,
}

impl<'a> Buffer<'a> {
    fn new(device: &'a VulkanDevice, elements: &[f32]) -> Result<Self, Box<dyn Error>> {
        let vk = device.device();
        let shared = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let create = vk::BufferCreateInfo::default()
            .size(size_of_val(elements) as u64)
            .usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        // SAFETY: The handles are the device's; the memory is as large as the buffer asks, and the
        // buffer as long as the list.
        unsafe {
            let raw = vk.create_buffer(&create, None)?;
            let needs = vk.get_buffer_memory_requirements(raw);
            let there =
                device.instance().get_physical_device_memory_properties(device.physical_device());
            let index = (0..there.memory_type_count).find(|index| {
                needs.memory_type_bits & (1 << index) != 0
                    && there.memory_types[*index as usize].property_flags.contains(shared)
            });
            let allocate = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(index.ok_or("no memory that the host can see")?);
            let memory = vk.allocate_memory(&allocate, None)?;
            vk.bind_buffer_memory(raw, memory, 0)?;
            let start = vk.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
            start.cast::<f32>().copy_from_nonoverlapping(elements.as_ptr(), elements.len());
            vk.unmap_memory(memory);
            Ok(Self { device, raw, memory })
        }
    }

    fn read(&self, elements: &mut [f32]) -> Result<(), vk::Result> {
        let vk = self.device.device();
        // SAFETY: The work is done, and the buffer is as long as the list.
        unsafe {
            let start =
                vk.map_memory(self.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
            start.cast::<f32>().copy_to_nonoverlapping(elements.as_mut_ptr(), elements.len());
            vk.unmap_memory(self.memory);
        }
        Ok(())
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: The work is done.
        unsafe {
            self.device.device().destroy_buffer(self.raw, None);
            self.device.device().free_memory(self.memory, None);
        }
    }
}
