//! One launch with everything it takes: what an application makes once and keeps.

use std::sync::Arc;

use grainstore_vulkan::ash::vk;
use grainstore_vulkan::{VulkanDevice, VulkanModule};

/// Runs a kernel whose set 0 has these buffers of words, in the order of their bindings, and gives
/// the buffers back. `groups` is the number of workgroups.
///
/// What the driver refuses leaves its handles behind: the test is over then.
pub(crate) fn try_launch(
    module: &VulkanModule,
    buffers: &[&[u32]],
    push: &[u8],
    groups: u32,
) -> Result<Vec<Vec<u32>>, vk::Result> {
    let buffers: Vec<_> = buffers
        .iter()
        .map(|words| Buffer::new(module.device(), words))
        .collect::<Result<_, _>>()?;
    Work::new(module, &buffers, push, groups)?.run()?;
    buffers.iter().map(Buffer::words).collect()
}

/// The same, where it has to work.
pub(crate) fn launch(
    module: &VulkanModule,
    buffers: &[&[u32]],
    push: &[u8],
    groups: u32,
) -> Vec<Vec<u32>> {
    try_launch(module, buffers, push, groups).unwrap()
}

/// Launches `saxpy` on two lists, one workgroup more than they need.
pub(crate) fn check_saxpy(module: &VulkanModule) {
    let x: Vec<u32> = (0..1000_u16).map(|i| f32::from(i).to_bits()).collect();
    let y = vec![1.0_f32.to_bits(); x.len()];
    let push = [2.0_f32.to_le_bytes(), 1000_u32.to_le_bytes()].concat();
    let out = launch(module, &[&x, &y], &push, 17);
    let right = |(i, y): (usize, &u32)| f32::from_bits(*y) == 2.0 * i as f32 + 1.0;
    assert!(out[1].iter().enumerate().all(right), "{:?}", &out[1][..8]);
    assert_eq!(out[0], x);
}

/// Words that device and host share.
struct Buffer {
    device: Arc<VulkanDevice>,
    raw: vk::Buffer,
    memory: vk::DeviceMemory,
    length: usize,
}

impl Buffer {
    fn new(device: &Arc<VulkanDevice>, words: &[u32]) -> Result<Self, vk::Result> {
        let vulkan = device.device();
        let flags = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        // SAFETY: the handles are made here, the memory is of a type that the buffer takes, and as
        // large as it asks; what is mapped is as long as the list.
        unsafe {
            let create = vk::BufferCreateInfo::default()
                .size(size_of_val(words) as u64)
                .usage(vk::BufferUsageFlags::STORAGE_BUFFER);
            let raw = vulkan.create_buffer(&create, None)?;
            let needs = vulkan.get_buffer_memory_requirements(raw);
            let types =
                device.instance().get_physical_device_memory_properties(device.physical_device());
            let index = (0..types.memory_type_count)
                .find(|index| {
                    needs.memory_type_bits & (1 << index) != 0
                        && types.memory_types[*index as usize].property_flags.contains(flags)
                })
                .ok_or(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY)?;
            let allocate = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(index);
            let memory = vulkan.allocate_memory(&allocate, None)?;
            vulkan.bind_buffer_memory(raw, memory, 0)?;
            let start =
                vulkan.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
            start.cast::<u32>().copy_from_nonoverlapping(words.as_ptr(), words.len());
            vulkan.unmap_memory(memory);
            Ok(Self { device: Arc::clone(device), raw, memory, length: words.len() })
        }
    }

    fn words(&self) -> Result<Vec<u32>, vk::Result> {
        let vulkan = self.device.device();
        let mut words = vec![0; self.length];
        // SAFETY: no work is running, and what is mapped is as long as the list.
        unsafe {
            let start =
                vulkan.map_memory(self.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
            start.cast::<u32>().copy_to_nonoverlapping(words.as_mut_ptr(), self.length);
            vulkan.unmap_memory(self.memory);
        }
        Ok(words)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: no work is running.
        unsafe {
            self.device.device().destroy_buffer(self.raw, None);
            self.device.device().free_memory(self.memory, None);
        }
    }
}

/// Recorded commands, and what they need.
struct Work {
    device: Arc<VulkanDevice>,
    descriptors: vk::DescriptorPool,
    commands: vk::CommandPool,
    recorded: vk::CommandBuffer,
    fence: vk::Fence,
}

impl Work {
    fn new(
        module: &VulkanModule,
        buffers: &[Buffer],
        push: &[u8],
        groups: u32,
    ) -> Result<Self, vk::Result> {
        let device = module.device();
        let vulkan = device.device();
        // SAFETY: the handles are made here or live in the module; set 0 takes as many storage
        // buffers as are given, and the push constants are as many bytes as the layout says.
        unsafe {
            let sizes = [vk::DescriptorPoolSize::default()
                .ty(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(buffers.len() as u32)];
            let create = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
            let descriptors = vulkan.create_descriptor_pool(&create, None)?;
            let allocate = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(descriptors)
                .set_layouts(&module.set_layouts()[..1]);
            let set = vulkan.allocate_descriptor_sets(&allocate)?[0];
            for (buffer, binding) in buffers.iter().zip(module.bindings()) {
                let info =
                    [vk::DescriptorBufferInfo::default().buffer(buffer.raw).range(vk::WHOLE_SIZE)];
                let write = vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(binding.binding)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .buffer_info(&info);
                vulkan.update_descriptor_sets(&[write], &[]);
            }
            let create =
                vk::CommandPoolCreateInfo::default().queue_family_index(device.queue_family());
            let commands = vulkan.create_command_pool(&create, None)?;
            let allocate = vk::CommandBufferAllocateInfo::default()
                .command_pool(commands)
                .command_buffer_count(1);
            let recorded = vulkan.allocate_command_buffers(&allocate)?[0];
            vulkan.begin_command_buffer(recorded, &vk::CommandBufferBeginInfo::default())?;
            let point = vk::PipelineBindPoint::COMPUTE;
            vulkan.cmd_bind_pipeline(recorded, point, module.pipeline());
            vulkan.cmd_bind_descriptor_sets(recorded, point, module.layout(), 0, &[set], &[]);
            if !push.is_empty() {
                let stage = vk::ShaderStageFlags::COMPUTE;
                vulkan.cmd_push_constants(recorded, module.layout(), stage, 0, push);
            }
            vulkan.cmd_dispatch(recorded, groups, 1, 1);
            let barrier = [vk::MemoryBarrier::default()
                .src_access_mask(vk::AccessFlags::SHADER_WRITE)
                .dst_access_mask(vk::AccessFlags::HOST_READ)];
            vulkan.cmd_pipeline_barrier(
                recorded,
                vk::PipelineStageFlags::COMPUTE_SHADER,
                vk::PipelineStageFlags::HOST,
                vk::DependencyFlags::empty(),
                &barrier,
                &[],
                &[],
            );
            vulkan.end_command_buffer(recorded)?;
            let fence = vulkan.create_fence(&vk::FenceCreateInfo::default(), None)?;
            Ok(Self { device: Arc::clone(device), descriptors, commands, recorded, fence })
        }
    }

    fn run(&self) -> Result<(), vk::Result> {
        let vulkan = self.device.device();
        let recorded = [self.recorded];
        let submit = vk::SubmitInfo::default().command_buffers(&recorded);
        // SAFETY: the commands are recorded, and the queue is locked while it is used.
        unsafe {
            vulkan.queue_submit(*self.device.queue(), &[submit], self.fence)?;
            vulkan.wait_for_fences(&[self.fence], true, u64::MAX)
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let vulkan = self.device.device();
        // SAFETY: the work is done.
        unsafe {
            vulkan.destroy_fence(self.fence, None);
            vulkan.destroy_command_pool(self.commands, None);
            vulkan.destroy_descriptor_pool(self.descriptors, None);
        }
    }
}
