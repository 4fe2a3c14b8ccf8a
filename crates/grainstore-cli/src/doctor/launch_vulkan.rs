//! A launch on a Vulkan device: two buffers, a descriptor set, a command buffer, a fence.

use grainstore::DeviceId;
use grainstore_runtime::{Backend, BackendError, Language};
use grainstore_vulkan::ash::vk;
use grainstore_vulkan::{VulkanBackend, VulkanDevice, VulkanModule};

use super::examine::{COUNT, FACTOR, Launch};

impl Launch for VulkanBackend {
    const SOURCE: &'static str = "\
var<immediate> a: f32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&y) { y[id.x] = a * x[id.x] + y[id.x]; }
}
";

    fn language(&self) -> Language {
        Language::Wgsl
    }

    fn launch(
        &self,
        _: &DeviceId,
        module: &<Self as Backend>::Module,
        x: &[f32; COUNT],
        y: &mut [f32; COUNT],
    ) -> Result<(), BackendError> {
        let device = module.device();
        let buffers = [Buffer::new(device, x)?, Buffer::new(device, y)?];
        let pools = Pools::new(device)?;
        // SAFETY: the handles are the device's and alive; the set binds what `SOURCE` takes, and the
        // work has ended when this returns.
        unsafe { run(module, &pools, &buffers) }?;
        buffers[1].read(y)
    }
}

/// # Safety
/// All of it is of the module's device, and the module is made of `SOURCE`.
unsafe fn run(
    module: &VulkanModule,
    pools: &Pools<'_>,
    buffers: &[Buffer<'_>; 2],
) -> Result<(), BackendError> {
    let device = module.device();
    let vulkan = device.device();
    let allocate = vk::DescriptorSetAllocateInfo::default()
        .descriptor_pool(pools.descriptors)
        .set_layouts(module.set_layouts());
    let (compute, stage) = (vk::PipelineBindPoint::COMPUTE, vk::ShaderStageFlags::COMPUTE);
    // SAFETY: as the caller says.
    unsafe {
        let sets = vulkan
            .allocate_descriptor_sets(&allocate)
            .map_err(failed("vkAllocateDescriptorSets"))?;
        for (binding, buffer) in (0..).zip(buffers) {
            let range =
                [vk::DescriptorBufferInfo::default().buffer(buffer.raw).range(vk::WHOLE_SIZE)];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(sets[0])
                .dst_binding(binding)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&range);
            vulkan.update_descriptor_sets(&[write], &[]);
        }
        let allocate = vk::CommandBufferAllocateInfo::default()
            .command_pool(pools.commands)
            .command_buffer_count(1);
        let commands = vulkan
            .allocate_command_buffers(&allocate)
            .map_err(failed("vkAllocateCommandBuffers"))?;
        vulkan
            .begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default())
            .map_err(failed("vkBeginCommandBuffer"))?;
        vulkan.cmd_bind_pipeline(commands[0], compute, module.pipeline());
        vulkan.cmd_bind_descriptor_sets(commands[0], compute, module.layout(), 0, &sets, &[]);
        let layout = module.layout();
        vulkan.cmd_push_constants(commands[0], layout, stage, 0, &FACTOR.to_ne_bytes());
        vulkan.cmd_dispatch(commands[0], COUNT.div_ceil(64) as u32, 1, 1);
        let to_host = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ);
        let (from, to) = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::HOST);
        let none = vk::DependencyFlags::empty();
        vulkan.cmd_pipeline_barrier(commands[0], from, to, none, &[to_host], &[], &[]);
        vulkan.end_command_buffer(commands[0]).map_err(failed("vkEndCommandBuffer"))?;
        let work = [vk::SubmitInfo::default().command_buffers(&commands)];
        vulkan
            .queue_submit(*device.queue(), &work, pools.fence)
            .map_err(failed("vkQueueSubmit"))?;
        vulkan.wait_for_fences(&[pools.fence], true, u64::MAX).map_err(failed("vkWaitForFences"))
    }
}

/// What a launch is recorded in, and what tells its end.
struct Pools<'d> {
    device: &'d VulkanDevice,
    descriptors: vk::DescriptorPool,
    commands: vk::CommandPool,
    fence: vk::Fence,
}

impl<'d> Pools<'d> {
    fn new(device: &'d VulkanDevice) -> Result<Self, BackendError> {
        let vulkan = device.device();
        let mut pools = Self {
            device,
            descriptors: vk::DescriptorPool::null(),
            commands: vk::CommandPool::null(),
            fence: vk::Fence::null(),
        };
        let sizes = [vk::DescriptorPoolSize::default()
            .ty(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(2)];
        let sets = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        let family = device.queue_family();
        let commands = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: the device is alive; what is made is destroyed with the pools.
        unsafe {
            pools.descriptors = vulkan
                .create_descriptor_pool(&sets, None)
                .map_err(failed("vkCreateDescriptorPool"))?;
            pools.commands = vulkan
                .create_command_pool(&commands, None)
                .map_err(failed("vkCreateCommandPool"))?;
            pools.fence = vulkan
                .create_fence(&vk::FenceCreateInfo::default(), None)
                .map_err(failed("vkCreateFence"))?;
        }
        Ok(pools)
    }
}

impl Drop for Pools<'_> {
    fn drop(&mut self) {
        let vulkan = self.device.device();
        // SAFETY: the work has ended, or never began; null handles are left alone.
        unsafe {
            vulkan.destroy_fence(self.fence, None);
            vulkan.destroy_command_pool(self.commands, None);
            vulkan.destroy_descriptor_pool(self.descriptors, None);
        }
    }
}

/// Numbers in memory that device and host share.
struct Buffer<'d> {
    device: &'d VulkanDevice,
    raw: vk::Buffer,
    memory: vk::DeviceMemory,
}

impl<'d> Buffer<'d> {
    fn new(device: &'d VulkanDevice, numbers: &[f32; COUNT]) -> Result<Self, BackendError> {
        let vulkan = device.device();
        let memory = vk::DeviceMemory::null();
        let mut buffer = Self { device, raw: vk::Buffer::null(), memory };
        let shared = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let create = vk::BufferCreateInfo::default()
            .size(size_of_val(numbers) as u64)
            .usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        // SAFETY: the device is alive; the memory is as large as the buffer asks, and the buffer as
        // long as the list.
        unsafe {
            buffer.raw = vulkan.create_buffer(&create, None).map_err(failed("vkCreateBuffer"))?;
            let needs = vulkan.get_buffer_memory_requirements(buffer.raw);
            let there =
                device.instance().get_physical_device_memory_properties(device.physical_device());
            let index = (0..there.memory_type_count).find(|index| {
                needs.memory_type_bits & (1 << index) != 0
                    && there.memory_types[*index as usize].property_flags.contains(shared)
            });
            let Some(index) = index else {
                return Err(BackendError::failed("a buffer", "no memory that the host can see"));
            };
            let allocate = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(index);
            buffer.memory =
                vulkan.allocate_memory(&allocate, None).map_err(failed("vkAllocateMemory"))?;
            vulkan
                .bind_buffer_memory(buffer.raw, buffer.memory, 0)
                .map_err(failed("vkBindBufferMemory"))?;
            let start = buffer.map()?;
            start.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len());
            vulkan.unmap_memory(buffer.memory);
        }
        Ok(buffer)
    }

    /// # Safety
    /// The memory is not mapped.
    unsafe fn map(&self) -> Result<*mut f32, BackendError> {
        let (vulkan, flags) = (self.device.device(), vk::MemoryMapFlags::empty());
        // SAFETY: the memory can be mapped, and is not.
        let start = unsafe { vulkan.map_memory(self.memory, 0, vk::WHOLE_SIZE, flags) };
        start.map(<*mut _>::cast).map_err(failed("vkMapMemory"))
    }

    fn read(&self, numbers: &mut [f32; COUNT]) -> Result<(), BackendError> {
        // SAFETY: the work has ended, and the buffer is as long as the list.
        unsafe {
            self.map()?.copy_to_nonoverlapping(numbers.as_mut_ptr(), numbers.len());
            self.device.device().unmap_memory(self.memory);
        }
        Ok(())
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let vulkan = self.device.device();
        // SAFETY: the work has ended, or never began; null handles are left alone.
        unsafe {
            vulkan.destroy_buffer(self.raw, None);
            vulkan.free_memory(self.memory, None);
        }
    }
}

fn failed(call: &'static str) -> impl Fn(vk::Result) -> BackendError {
    move |result| BackendError::failed(call, result)
}
