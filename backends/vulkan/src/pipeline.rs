//! From checked SPIR-V to a pipeline, and back to its cache's data. With `driver`, `existing` and
//! `context`, this is where Vulkan is called.

use std::ffi::CString;
use std::sync::Arc;

use ash::vk;
use grainstore_runtime::BackendError;

use crate::artifact::worth_keeping;
use crate::compile::Compiled;
use crate::context::VulkanDevice;
use crate::features;
use crate::spirv::{Binding, Interface, Specialized};
use crate::status::{failed, name};

/// What a driver says of a pipeline that it did not have to compile.
const HIT: vk::PipelineCreationFeedbackFlags =
    vk::PipelineCreationFeedbackFlags::APPLICATION_PIPELINE_CACHE_HIT;

/// The native objects of a module. A handle that is null was not made yet, or is gone.
#[derive(Debug)]
pub(crate) struct Pipeline {
    device: Arc<VulkanDevice>,
    pub(crate) shader: vk::ShaderModule,
    pub(crate) sets: Vec<vk::DescriptorSetLayout>,
    pub(crate) layout: vk::PipelineLayout,
    pub(crate) raw: vk::Pipeline,
    /// Only while the pipeline is made.
    cache: vk::PipelineCache,
    /// Whether its code was in the data of the cache, where the driver says so.
    pub(crate) from_cache: Option<bool>,
    /// How many handles there are.
    handles: usize,
}

impl Pipeline {
    /// Makes all of it. `cached` is what [`cache_data`](Made::cache_data) was before, or empty.
    pub(crate) fn make(
        device: &Arc<VulkanDevice>,
        kernel: &str,
        compiled: &Compiled,
        cached: &[u8],
    ) -> Result<Made, BackendError> {
        check(device, kernel, compiled)?;
        let mut pipeline = Self {
            device: Arc::clone(device),
            shader: vk::ShaderModule::null(),
            sets: Vec::new(),
            layout: vk::PipelineLayout::null(),
            raw: vk::Pipeline::null(),
            cache: vk::PipelineCache::null(),
            from_cache: None,
            handles: 0,
        };
        pipeline.make_shader(&compiled.words)?;
        pipeline.make_layouts(&compiled.interface)?;
        pipeline.make_cache(cached)?;
        let empty = if cached.is_empty() { pipeline.cache_size() } else { 0 };
        pipeline.make_pipeline(kernel, &compiled.interface.entry, &compiled.specialized)?;
        // A cache that began with stored data may hold that and more: it is never kept again.
        let cache_data = if cached.is_empty() { pipeline.cache_data(empty) } else { None };
        pipeline.drop_cache();
        Ok(Made { pipeline, cache_data })
    }

    /// Its device.
    pub(crate) fn device(&self) -> &Arc<VulkanDevice> {
        &self.device
    }

    fn make_shader(&mut self, words: &[u32]) -> Result<(), BackendError> {
        let create = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: the device lives, here and below, and the words were walked over to their end.
        self.shader = unsafe { self.device.device().create_shader_module(&create, None) }
            .map_err(failed("vkCreateShaderModule"))?;
        self.made();
        Ok(())
    }

    fn make_layouts(&mut self, interface: &Interface) -> Result<(), BackendError> {
        let count = interface.bindings.iter().map(|it| it.set + 1).max().unwrap_or(0);
        for set in 0..count {
            let bindings: Vec<_> =
                interface.bindings.iter().filter(|it| it.set == set).map(layout_binding).collect();
            let create = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            // SAFETY: the bindings differ, and are within the device's limits.
            let layout =
                unsafe { self.device.device().create_descriptor_set_layout(&create, None) }
                    .map_err(failed("vkCreateDescriptorSetLayout"))?;
            self.sets.push(layout);
            self.made();
        }
        let ranges = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(interface.push_constants)];
        let ranges = if interface.push_constants == 0 { &[][..] } else { &ranges };
        let create = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&self.sets)
            .push_constant_ranges(ranges);
        // SAFETY: the set layouts live, and the range is within the device's limits.
        self.layout = unsafe { self.device.device().create_pipeline_layout(&create, None) }
            .map_err(failed("vkCreatePipelineLayout"))?;
        self.made();
        Ok(())
    }

    fn make_cache(&mut self, data: &[u8]) -> Result<(), BackendError> {
        let create = vk::PipelineCacheCreateInfo::default().initial_data(data);
        // SAFETY: the data is empty, or what this driver gave: its seal and its header were checked.
        self.cache = unsafe { self.device.device().create_pipeline_cache(&create, None) }
            .map_err(failed("vkCreatePipelineCache"))?;
        self.made();
        Ok(())
    }

    fn make_pipeline(
        &mut self,
        kernel: &str,
        entry: &str,
        specialized: &[Specialized],
    ) -> Result<(), BackendError> {
        // A text of SPIR-V ends at its NUL, so there is none within.
        let entry = CString::new(entry).unwrap_or_default();
        let mut data = Vec::new();
        let mut entries = Vec::with_capacity(specialized.len());
        for Specialized { spec_id, bytes } in specialized {
            entries.push(
                vk::SpecializationMapEntry::default()
                    .constant_id(*spec_id)
                    .offset(u32::try_from(data.len()).unwrap_or(u32::MAX))
                    .size(bytes.len()),
            );
            data.extend_from_slice(bytes);
        }
        let constants = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(self.shader)
            .name(&entry)
            .specialization_info(&constants);
        let mut feedback = vk::PipelineCreationFeedback::default();
        let mut ask = vk::PipelineCreationFeedbackCreateInfo::default()
            .pipeline_creation_feedback(&mut feedback);
        let mut create = vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout);
        if self.device.gives_feedback() {
            create = create.push_next(&mut ask);
        }
        // SAFETY: shader, layout and cache are the device's and live; the entry point is the
        // shader's, the layout binds all that it uses, and the constants have their sizes.
        let made =
            unsafe { self.device.device().create_compute_pipelines(self.cache, &[create], None) };
        match made {
            Ok(pipelines) => {
                self.raw = pipelines.first().copied().unwrap_or_default();
                self.made();
                let said = |flag| feedback.flags.contains(flag);
                self.from_cache = said(vk::PipelineCreationFeedbackFlags::VALID).then(|| said(HIT));
                Ok(())
            }
            // The one result that says that the code is wrong; others do not tell.
            Err((_, result @ vk::Result::ERROR_INVALID_SHADER_NV)) => Err(BackendError::Compile {
                log: format!("{kernel}: vkCreateComputePipelines: {}", name(result)),
            }),
            Err((_, result)) => Err(failed("vkCreateComputePipelines")(result)),
        }
    }

    /// Bytes of a cache in which there is nothing yet. Not to know is to keep too much.
    fn cache_size(&self) -> usize {
        // SAFETY: the cache lives.
        unsafe { self.device.device().get_pipeline_cache_data(self.cache) }
            .map_or(0, |data| data.len())
    }

    /// What the cache holds, if that is anything. A driver that cannot say does not fail a build.
    fn cache_data(&self, empty: usize) -> Option<Vec<u8>> {
        // SAFETY: the cache lives.
        let data = unsafe { self.device.device().get_pipeline_cache_data(self.cache) }.ok()?;
        worth_keeping(data, empty)
    }

    fn drop_cache(&mut self) {
        // SAFETY: the cache lives or is null, and is not used after this.
        unsafe { self.device.device().destroy_pipeline_cache(self.cache, None) };
        self.cache = vk::PipelineCache::null();
        self.handles -= 1;
        self.device.live().remove(1);
    }

    fn made(&mut self) {
        self.handles += 1;
        self.device.live().add(1);
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if !self.device.may_destroy() {
            return;
        }
        let device = self.device.device();
        // SAFETY: each is the device's or null, and destroyed once; whoever drops a module is done
        // with what runs it.
        unsafe {
            device.destroy_pipeline(self.raw, None);
            device.destroy_pipeline_cache(self.cache, None);
            device.destroy_pipeline_layout(self.layout, None);
            for set in &self.sets {
                device.destroy_descriptor_set_layout(*set, None);
            }
            device.destroy_shader_module(self.shader, None);
        }
        self.device.live().remove(self.handles);
    }
}

/// A new pipeline, and the data of the cache that it was made with: none where that is not worth
/// keeping, or was stored before.
pub(crate) struct Made {
    pub(crate) pipeline: Pipeline,
    pub(crate) cache_data: Option<Vec<u8>>,
}

fn layout_binding(it: &Binding) -> vk::DescriptorSetLayoutBinding<'static> {
    vk::DescriptorSetLayoutBinding::default()
        .binding(it.binding)
        .descriptor_type(it.kind)
        .descriptor_count(it.count)
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
}

/// Refuses what is beyond this device: drivers take it, and fall over it.
fn check(device: &VulkanDevice, kernel: &str, compiled: &Compiled) -> Result<(), BackendError> {
    let refuse = |what: String| {
        Err(BackendError::unsupported(
            format!("kernel `{kernel}` needs {what}"),
            "this device does not have that; leave it out, or build for another device",
        ))
    };
    if let Some(there) = device.abilities() {
        let mut lacking =
            compiled.capabilities.iter().filter_map(|it| features::lacking(*it, there));
        if let Some(what) = lacking.next() {
            return Err(BackendError::unsupported(
                format!("kernel `{kernel}` needs {what}"),
                "this device does not have that, or this backend does not enable it; an existing \
                 device that has it may be given with the builder's `device`",
            ));
        }
    }
    let limits = device.limits();
    if let Some(newest) = device.spirv_version().filter(|it| *it < compiled.spirv_version) {
        return refuse(format!("SPIR-V 1.{}, beyond 1.{newest}", compiled.spirv_version));
    }
    let Interface { bindings, push_constants, workgroup_size, shared_memory, .. } =
        &compiled.interface;
    let invocations: u64 = workgroup_size.iter().map(|size| u64::from(*size)).product();
    let greatest = limits.max_compute_work_group_size;
    if workgroup_size.iter().zip(&greatest).any(|(size, greatest)| size > greatest)
        || invocations > u64::from(limits.max_compute_work_group_invocations)
    {
        return refuse(format!(
            "workgroups of {workgroup_size:?}, beyond {greatest:?} or {} in all",
            limits.max_compute_work_group_invocations
        ));
    }
    if *shared_memory > u64::from(limits.max_compute_shared_memory_size) {
        return refuse(format!(
            "{shared_memory} bytes of workgroup memory, beyond {}",
            limits.max_compute_shared_memory_size
        ));
    }
    if *push_constants > limits.max_push_constants_size {
        return refuse(format!(
            "{push_constants} bytes of push constants, beyond {}",
            limits.max_push_constants_size
        ));
    }
    if let Some(binding) = bindings.iter().find(|it| it.set >= limits.max_bound_descriptor_sets) {
        return refuse(format!(
            "descriptor set {}, where there are {}",
            binding.set, limits.max_bound_descriptor_sets
        ));
    }
    use vk::DescriptorType as Kind;
    for (kinds, greatest, plural) in [
        (
            &[Kind::STORAGE_BUFFER][..],
            limits.max_per_stage_descriptor_storage_buffers,
            "storage buffers",
        ),
        (
            &[Kind::UNIFORM_BUFFER],
            limits.max_per_stage_descriptor_uniform_buffers,
            "uniform buffers",
        ),
        (
            &[Kind::SAMPLER, Kind::COMBINED_IMAGE_SAMPLER],
            limits.max_per_stage_descriptor_samplers,
            "samplers",
        ),
        (
            &[Kind::SAMPLED_IMAGE, Kind::COMBINED_IMAGE_SAMPLER, Kind::UNIFORM_TEXEL_BUFFER],
            limits.max_per_stage_descriptor_sampled_images,
            "sampled images",
        ),
        (
            &[Kind::STORAGE_IMAGE, Kind::STORAGE_TEXEL_BUFFER],
            limits.max_per_stage_descriptor_storage_images,
            "storage images",
        ),
    ] {
        let all = bindings.iter().filter(|it| kinds.contains(&it.kind));
        let count: u64 = all.map(|it| u64::from(it.count)).sum();
        if count > u64::from(greatest) {
            return refuse(format!("{count} {plural}, beyond {greatest}"));
        }
    }
    Ok(())
}
