//! Launches on a Vulkan device: memory, a descriptor set, a command buffer, a fence.

use std::sync::Arc;

use grainstore_vulkan::ash::vk;
use grainstore_vulkan::{VulkanDevice, VulkanModule};

use crate::CaseError;
use crate::gpu::{Gpu, Plain};

/// The most buffers that a kernel has, the one of its numbers included.
const BUFFERS: u32 = 8;

/// The modules of a kernel, on one device, and what a launch needs. Each launch is waited for, so all
/// of it can be used again.
pub struct VulkanSession<'a> {
    modules: Vec<&'a VulkanModule>,
    device: &'a Arc<VulkanDevice>,
    commands: vk::CommandPool,
    descriptors: vk::DescriptorPool,
    fence: vk::Fence,
}

/// A buffer that host and device share.
pub(crate) struct Shared {
    device: Arc<VulkanDevice>,
    raw: vk::Buffer,
    memory: vk::DeviceMemory,
}

fn failed(call: &'static str) -> impl Fn(vk::Result) -> CaseError {
    move |result| CaseError::Driver { call, message: result.to_string() }
}

fn wrong(message: impl Into<String>) -> CaseError {
    CaseError::Driver { call: "a session", message: message.into() }
}

impl<'a> VulkanSession<'a> {
    /// A session with these modules, of one device: one for each function of the kernel.
    ///
    /// # Errors
    /// Where there is no module; what the driver says.
    pub fn new(modules: Vec<&'a VulkanModule>) -> Result<Self, CaseError> {
        let device = modules.first().ok_or_else(|| wrong("it has no module"))?.device();
        let mut session = Self {
            modules,
            device,
            commands: vk::CommandPool::null(),
            descriptors: vk::DescriptorPool::null(),
            fence: vk::Fence::null(),
        };
        let vulkan = device.device();
        let pool = vk::CommandPoolCreateInfo::default().queue_family_index(device.queue_family());
        let sizes = [vk::DescriptorType::UNIFORM_BUFFER, vk::DescriptorType::STORAGE_BUFFER]
            .map(|kind| vk::DescriptorPoolSize::default().ty(kind).descriptor_count(BUFFERS));
        let sets = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        // SAFETY: The device lives; what is made belongs to the session, which destroys it.
        unsafe {
            session.commands =
                vulkan.create_command_pool(&pool, None).map_err(failed("vkCreateCommandPool"))?;
            session.descriptors = vulkan
                .create_descriptor_pool(&sets, None)
                .map_err(failed("vkCreateDescriptorPool"))?;
            session.fence = vulkan
                .create_fence(&vk::FenceCreateInfo::default(), None)
                .map_err(failed("vkCreateFence"))?;
        }
        Ok(session)
    }

    /// A set with these buffers, numbered in their order.
    ///
    /// # Safety
    /// No launch is running, and the module's first set takes buffers of these kinds.
    unsafe fn describe(
        &self,
        module: &VulkanModule,
        buffers: &[(vk::DescriptorType, &Shared)],
    ) -> Result<vk::DescriptorSet, CaseError> {
        let vulkan = self.device.device();
        let layouts = module.set_layouts().get(..1).ok_or_else(|| wrong("nothing is bound"))?;
        let allocate = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(self.descriptors)
            .set_layouts(layouts);
        // SAFETY: No launch uses the set of the one before; the buffers live until this one is done.
        unsafe {
            vulkan
                .reset_descriptor_pool(self.descriptors, vk::DescriptorPoolResetFlags::empty())
                .map_err(failed("vkResetDescriptorPool"))?;
            let sets = vulkan
                .allocate_descriptor_sets(&allocate)
                .map_err(failed("vkAllocateDescriptorSets"))?;
            for (binding, (kind, buffer)) in (0..).zip(buffers) {
                let info = vk::DescriptorBufferInfo::default().buffer(buffer.raw);
                let info = [info.range(vk::WHOLE_SIZE)];
                let write = vk::WriteDescriptorSet::default()
                    .dst_set(sets[0])
                    .dst_binding(binding)
                    .descriptor_type(*kind)
                    .buffer_info(&info);
                vulkan.update_descriptor_sets(&[write], &[]);
            }
            Ok(sets[0])
        }
    }

    /// Records one dispatch.
    ///
    /// # Safety
    /// No launch is running, and the set is of the module's layout.
    unsafe fn record(
        &self,
        module: &VulkanModule,
        set: vk::DescriptorSet,
        [x, y, z]: [u32; 3],
    ) -> Result<vk::CommandBuffer, CaseError> {
        let vulkan = self.device.device();
        let compute = vk::PipelineBindPoint::COMPUTE;
        let allocate = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.commands)
            .command_buffer_count(1);
        let written = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ | vk::AccessFlags::SHADER_READ)];
        // SAFETY: Nothing of the pool is in use, and all handles live.
        unsafe {
            vulkan
                .reset_command_pool(self.commands, vk::CommandPoolResetFlags::RELEASE_RESOURCES)
                .map_err(failed("vkResetCommandPool"))?;
            let commands = vulkan
                .allocate_command_buffers(&allocate)
                .map_err(failed("vkAllocateCommandBuffers"))?[0];
            vulkan
                .begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default())
                .map_err(failed("vkBeginCommandBuffer"))?;
            vulkan.cmd_bind_pipeline(commands, compute, module.pipeline());
            vulkan.cmd_bind_descriptor_sets(commands, compute, module.layout(), 0, &[set], &[]);
            vulkan.cmd_dispatch(commands, x, y, z);
            vulkan.cmd_pipeline_barrier(
                commands,
                vk::PipelineStageFlags::COMPUTE_SHADER,
                vk::PipelineStageFlags::HOST | vk::PipelineStageFlags::COMPUTE_SHADER,
                vk::DependencyFlags::empty(),
                &written,
                &[],
                &[],
            );
            vulkan.end_command_buffer(commands).map_err(failed("vkEndCommandBuffer"))?;
            Ok(commands)
        }
    }

    /// Submits, and waits until it is done.
    ///
    /// # Safety
    /// The commands are recorded, and what they use lives.
    unsafe fn run(&self, commands: vk::CommandBuffer) -> Result<(), CaseError> {
        let vulkan = self.device.device();
        let commands = [commands];
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        // SAFETY: The fence is not in use, and the queue is locked while it is.
        unsafe {
            vulkan.reset_fences(&[self.fence]).map_err(failed("vkResetFences"))?;
            vulkan
                .queue_submit(*self.device.queue(), &[submit], self.fence)
                .map_err(failed("vkQueueSubmit"))?;
            vulkan.wait_for_fences(&[self.fence], true, u64::MAX).map_err(failed("vkWaitForFences"))
        }
    }

    fn shared(&self, content: &[u8], usage: vk::BufferUsageFlags) -> Result<Shared, CaseError> {
        let vulkan = self.device.device();
        let create = vk::BufferCreateInfo::default().size(content.len() as u64).usage(usage);
        // SAFETY: The device lives; what is made belongs to the buffer, which destroys it.
        let raw =
            unsafe { vulkan.create_buffer(&create, None) }.map_err(failed("vkCreateBuffer"))?;
        let device = Arc::clone(self.device);
        let mut shared = Shared { device, raw, memory: vk::DeviceMemory::null() };
        shared.allocate()?;
        shared.mapped(|start| {
            // SAFETY: What is mapped is as long as the buffer, and that as the content.
            unsafe { start.copy_from_nonoverlapping(content.as_ptr(), content.len()) }
        })?;
        Ok(shared)
    }
}

impl Shared {
    /// Memory that the host can write and read without more ado.
    fn allocate(&mut self) -> Result<(), CaseError> {
        let vulkan = self.device.device();
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        // SAFETY: The buffer lives and has no memory yet; this is as much and of a kind as it wants.
        unsafe {
            let needs = vulkan.get_buffer_memory_requirements(self.raw);
            let there = self
                .device
                .instance()
                .get_physical_device_memory_properties(self.device.physical_device());
            let fits = |index: &u32| {
                let kind = there.memory_types[*index as usize];
                needs.memory_type_bits & (1 << index) != 0 && kind.property_flags.contains(wanted)
            };
            let kind = (0..there.memory_type_count)
                .find(fits)
                .ok_or_else(|| wrong("the device shares no memory with the host"))?;
            let allocate = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(kind);
            self.memory =
                vulkan.allocate_memory(&allocate, None).map_err(failed("vkAllocateMemory"))?;
            vulkan
                .bind_buffer_memory(self.raw, self.memory, 0)
                .map_err(failed("vkBindBufferMemory"))
        }
    }

    fn mapped(&self, copy: impl FnOnce(*mut u8)) -> Result<(), CaseError> {
        let vulkan = self.device.device();
        // SAFETY: The memory is the host's to map, and no launch is running.
        unsafe {
            let start = vulkan
                .map_memory(self.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())
                .map_err(failed("vkMapMemory"))?;
            copy(start.cast());
            vulkan.unmap_memory(self.memory);
        }
        Ok(())
    }
}

impl Gpu for VulkanSession<'_> {
    type Memory = Shared;

    fn create(&self, content: &[u8]) -> Result<Shared, CaseError> {
        self.shared(content, vk::BufferUsageFlags::STORAGE_BUFFER)
    }

    fn read(&self, memory: &Shared, content: &mut [u8]) -> Result<(), CaseError> {
        memory.mapped(|start| {
            // SAFETY: What is mapped is as long as the buffer, and that as the content.
            unsafe { start.copy_to_nonoverlapping(content.as_mut_ptr(), content.len()) }
        })
    }

    unsafe fn enqueue(
        &self,
        function: &str,
        groups: [usize; 3],
        _: [usize; 3],
        arguments: &[Plain<'_, Shared>],
    ) -> Result<(), CaseError> {
        let module = self
            .modules
            .iter()
            .find(|module| module.entry() == function)
            .ok_or_else(|| wrong(format!("it has no module of `{function}`")))?;
        let mut numbers = Vec::new();
        let mut buffers = Vec::new();
        for argument in arguments {
            match argument {
                Plain::Number(bytes) => numbers.extend(bytes),
                Plain::Memory(buffer) => {
                    buffers.push((vk::DescriptorType::STORAGE_BUFFER, *buffer));
                }
            }
        }
        let numbers = self.shared(&numbers, vk::BufferUsageFlags::UNIFORM_BUFFER)?;
        buffers.insert(0, (vk::DescriptorType::UNIFORM_BUFFER, &numbers));
        // SAFETY: Every launch is waited for; the caller promises that these are the source's
        // bindings. The numbers live until this launch is done.
        unsafe {
            let set = self.describe(module, &buffers)?;
            let commands = self.record(module, set, groups.map(|count| count as u32))?;
            self.run(commands)
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: Every launch was waited for.
        unsafe {
            self.device.device().destroy_buffer(self.raw, None);
            self.device.device().free_memory(self.memory, None);
        }
    }
}

impl Drop for VulkanSession<'_> {
    fn drop(&mut self) {
        let vulkan = self.device.device();
        // SAFETY: Every launch was waited for.
        unsafe {
            vulkan.destroy_fence(self.fence, None);
            vulkan.destroy_descriptor_pool(self.descriptors, None);
            vulkan.destroy_command_pool(self.commands, None);
        }
    }
}

impl std::fmt::Debug for VulkanSession<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VulkanSession").field("device", self.device).finish_non_exhaustive()
    }
}
