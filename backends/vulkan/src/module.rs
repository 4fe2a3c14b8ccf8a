//! A loaded kernel: a compute pipeline, and the native handles that it gives out.

use std::sync::Arc;

use ash::vk;

use crate::context::VulkanDevice;
use crate::pipeline::Pipeline;
use crate::spirv::{Binding, Interface};

/// A compute pipeline of one entry point, with its shader module and layouts. It keeps its device
/// alive.
///
/// The handles it gives out are good while it lives; they are its own to destroy.
#[derive(Debug)]
pub struct VulkanModule {
    pipeline: Pipeline,
    interface: Interface,
}

impl VulkanModule {
    pub(crate) fn new(pipeline: Pipeline, interface: Interface) -> Self {
        Self { pipeline, interface }
    }

    /// The device it lives on, for buffers, pools and submits.
    #[must_use]
    pub fn device(&self) -> &Arc<VulkanDevice> {
        self.pipeline.device()
    }

    /// The pipeline, for `vkCmdBindPipeline`.
    #[must_use]
    pub fn pipeline(&self) -> vk::Pipeline {
        self.pipeline.raw
    }

    /// The pipeline's layout, for `vkCmdBindDescriptorSets` and `vkCmdPushConstants`.
    #[must_use]
    pub fn layout(&self) -> vk::PipelineLayout {
        self.pipeline.layout
    }

    /// The layouts of the descriptor sets, by the set's number. A set that the kernel does not use,
    /// below one that it does, has an empty layout.
    #[must_use]
    pub fn set_layouts(&self) -> &[vk::DescriptorSetLayout] {
        &self.pipeline.sets
    }

    /// The shader module.
    #[must_use]
    pub fn shader_module(&self) -> vk::ShaderModule {
        self.pipeline.shader
    }

    /// Whether the driver found the pipeline's code in the artifact's data and compiled nothing.
    /// None where it does not say, and for a device of the user's own.
    #[must_use]
    pub fn from_cache(&self) -> Option<bool> {
        self.pipeline.from_cache
    }

    /// The entry point.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.interface.entry
    }

    /// What the kernel binds, by set and number.
    #[must_use]
    pub fn bindings(&self) -> &[Binding] {
        &self.interface.bindings
    }

    /// How many bytes of push constants it takes, from the first on; 0 for none.
    #[must_use]
    pub fn push_constant_size(&self) -> u32 {
        self.interface.push_constants
    }

    /// How many invocations a workgroup has, in each dimension: what the sizes of a dispatch are
    /// divided by.
    #[must_use]
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.interface.workgroup_size
    }
}
