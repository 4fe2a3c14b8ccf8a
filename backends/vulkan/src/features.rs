//! Which features this backend enables on a device that it makes, and which SPIR-V they allow.
//!
//! Enabled is what kernels may need and the device has. `robustBufferAccess` is not among them: it
//! makes every access slower, and whoever wants checks has them put into the code.

use ash::vk;

/// The structs of features, as far as the device's version knows them.
#[derive(Default)]
pub(crate) struct Structs {
    pub(crate) core: vk::PhysicalDeviceFeatures,
    pub(crate) v11: vk::PhysicalDeviceVulkan11Features<'static>,
    pub(crate) v12: vk::PhysicalDeviceVulkan12Features<'static>,
    pub(crate) v13: vk::PhysicalDeviceVulkan13Features<'static>,
}

macro_rules! features {
    ($($group:ident.$field:ident = $name:literal [$($capability:literal),*];)*) => {
        /// The names of those that are set, in the order of the table.
        pub(crate) fn names(structs: &Structs) -> Vec<&'static str> {
            let mut names = Vec::new();
            $(if structs.$group.$field != vk::FALSE { names.push($name); })*
            names
        }

        /// The structs with these set, and no others.
        pub(crate) fn structs(names: &[&str]) -> Structs {
            let mut structs = Structs::default();
            $(structs.$group.$field = names.contains(&$name).into();)*
            structs
        }

        /// Each feature and the capabilities that it allows.
        const TABLE: &[(&str, &[u32])] = &[$(($name, &[$($capability),*])),*];
    };
}

features! {
    core.image_cube_array = "imageCubeArray" [34, 45];
    core.shader_float64 = "shaderFloat64" [10];
    core.shader_image_gather_extended = "shaderImageGatherExtended" [25];
    core.shader_int16 = "shaderInt16" [22];
    core.shader_int64 = "shaderInt64" [11];
    core.shader_sampled_image_array_dynamic_indexing =
        "shaderSampledImageArrayDynamicIndexing" [29];
    core.shader_storage_buffer_array_dynamic_indexing =
        "shaderStorageBufferArrayDynamicIndexing" [30];
    core.shader_storage_image_array_dynamic_indexing =
        "shaderStorageImageArrayDynamicIndexing" [31];
    core.shader_storage_image_extended_formats = "shaderStorageImageExtendedFormats" [49];
    core.shader_storage_image_read_without_format = "shaderStorageImageReadWithoutFormat" [55];
    core.shader_storage_image_write_without_format = "shaderStorageImageWriteWithoutFormat" [56];
    core.shader_uniform_buffer_array_dynamic_indexing =
        "shaderUniformBufferArrayDynamicIndexing" [28];
    v11.storage_buffer16_bit_access = "storageBuffer16BitAccess" [4433];
    v11.storage_push_constant16 = "storagePushConstant16" [4435];
    v11.uniform_and_storage_buffer16_bit_access = "uniformAndStorageBuffer16BitAccess" [4434];
    v11.variable_pointers = "variablePointers" [4442];
    v11.variable_pointers_storage_buffer = "variablePointersStorageBuffer" [4441];
    v12.buffer_device_address = "bufferDeviceAddress" [5347];
    v12.host_query_reset = "hostQueryReset" [];
    v12.scalar_block_layout = "scalarBlockLayout" [];
    v12.shader_buffer_int64_atomics = "shaderBufferInt64Atomics" [12];
    v12.shader_float16 = "shaderFloat16" [9];
    v12.shader_int8 = "shaderInt8" [39];
    v12.shader_shared_int64_atomics = "shaderSharedInt64Atomics" [12];
    v12.shader_subgroup_extended_types = "shaderSubgroupExtendedTypes" [];
    v12.storage_buffer8_bit_access = "storageBuffer8BitAccess" [4448];
    v12.storage_push_constant8 = "storagePushConstant8" [4450];
    v12.timeline_semaphore = "timelineSemaphore" [];
    v12.uniform_and_storage_buffer8_bit_access = "uniformAndStorageBuffer8BitAccess" [4449];
    v12.uniform_buffer_standard_layout = "uniformBufferStandardLayout" [];
    v12.vulkan_memory_model = "vulkanMemoryModel" [5345];
    v12.vulkan_memory_model_device_scope = "vulkanMemoryModelDeviceScope" [5346];
    v13.compute_full_subgroups = "computeFullSubgroups" [];
    v13.maintenance4 = "maintenance4" [];
    v13.shader_integer_dot_product = "shaderIntegerDotProduct" [6016, 6017, 6018, 6019];
    v13.shader_zero_initialize_workgroup_memory = "shaderZeroInitializeWorkgroupMemory" [];
    v13.subgroup_size_control = "subgroupSizeControl" [];
    v13.synchronization2 = "synchronization2" [];
}

/// Capabilities that every device has: matrices, shaders, images of one dimension or of a buffer,
/// queries of images, derivatives.
const ALWAYS: [u32; 8] = [0, 1, 43, 44, 46, 47, 50, 51];

/// What a device says of subgroups, and the capability that it allows.
const SUBGROUPS: [(vk::SubgroupFeatureFlags, &str, u32); 8] = [
    (vk::SubgroupFeatureFlags::BASIC, "subgroupBasic", 61),
    (vk::SubgroupFeatureFlags::VOTE, "subgroupVote", 62),
    (vk::SubgroupFeatureFlags::ARITHMETIC, "subgroupArithmetic", 63),
    (vk::SubgroupFeatureFlags::BALLOT, "subgroupBallot", 64),
    (vk::SubgroupFeatureFlags::SHUFFLE, "subgroupShuffle", 65),
    (vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE, "subgroupShuffleRelative", 66),
    (vk::SubgroupFeatureFlags::CLUSTERED, "subgroupClustered", 67),
    (vk::SubgroupFeatureFlags::QUAD, "subgroupQuad", 68),
];

/// The names of what subgroups can do in compute pipelines.
pub(crate) fn subgroup_names(
    properties: &vk::PhysicalDeviceSubgroupProperties,
) -> Vec<&'static str> {
    if !properties.supported_stages.contains(vk::ShaderStageFlags::COMPUTE) {
        return Vec::new();
    }
    let can = |flag| properties.supported_operations.contains(flag);
    SUBGROUPS.iter().filter(|(flag, ..)| can(*flag)).map(|(_, name, _)| *name).collect()
}

/// What a capability needs that is not among these features; none where all is there.
pub(crate) fn lacking(capability: u32, there: &[&str]) -> Option<String> {
    if ALWAYS.contains(&capability) {
        return None;
    }
    let subgroups = SUBGROUPS.iter().map(|(_, name, capability)| (*name, *capability));
    let all = TABLE
        .iter()
        .flat_map(|(name, capabilities)| capabilities.iter().map(move |number| (*name, *number)));
    let mut allow = all.chain(subgroups).filter(|it| it.1 == capability).map(|it| it.0).peekable();
    match allow.peek().copied() {
        None => Some(format!("the SPIR-V capability {capability}, which no feature enables here")),
        Some(first) => (!allow.any(|name| there.contains(&name)))
            .then(|| format!("the feature {first} (SPIR-V capability {capability})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_what_is_named() {
        let mut structs = structs(&["shaderInt8", "synchronization2"]);
        assert_eq!((structs.v12.shader_int8, structs.v13.synchronization2), (1, 1));
        assert_eq!(structs.core.shader_float64, 0);
        structs.core.shader_float64 = vk::TRUE;
        structs.core.robust_buffer_access = vk::TRUE;
        assert_eq!(names(&structs), ["shaderFloat64", "shaderInt8", "synchronization2"]);
    }

    #[test]
    fn a_capability_needs_its_feature() {
        assert_eq!(lacking(1, &[]), None);
        assert_eq!(lacking(10, &["shaderFloat64"]), None);
        assert!(lacking(10, &["shaderInt64"]).unwrap().contains("shaderFloat64"));
        // Either of two is enough; what exactly it allows, the driver knows.
        assert_eq!(lacking(12, &["shaderSharedInt64Atomics"]), None);
        assert_eq!(lacking(63, &["subgroupArithmetic"]), None);
        assert!(lacking(63, &[]).unwrap().contains("subgroupArithmetic"));
        assert!(lacking(6022, &["shaderInt8"]).unwrap().contains("6022"));
    }
}
