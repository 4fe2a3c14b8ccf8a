//! Who makes the code of a kernel, as keys say it.

use ash::vk;
use grainstore_runtime::{KernelSpec, Toolchain};

use crate::compile;
use crate::driver::Facts;

/// How the variables begin that steer the compilers of the known drivers.
const PREFIXES: [&str; 19] = [
    "ACO_", "AMD_", "ANV_", "AMDVLK_", "FD_", "GALLIUM_", "GALLIVM_", "INTEL_", "IR3_", "LP_",
    "MESA_", "MVK_", "NAK_", "NIR_", "NVK_", "PAN_", "RADV_", "TU_", "__GL_",
];

/// Those of them that have nothing to do with the code.
const HARMLESS: [&str; 13] = [
    "GALLIUM_HUD",
    "GALLIUM_LOG",
    "INTEL_MEASURE",
    "LP_NUM_THREADS",
    "MESA_DISK_CACHE",
    "MESA_GLSL_CACHE",
    "MESA_LOADER",
    "MESA_LOG",
    "MESA_SHADER_CACHE",
    "MESA_VK_WSI",
    "MVK_CONFIG_LOG",
    "__GL_SHADER_DISK_CACHE",
    "__GL_SYNC",
];

/// What a device's driver says of itself, without the variables, which may change.
pub(crate) fn versions(facts: &Facts, driver: &str) -> String {
    let mut versions = format!(
        "{driver}; driver {:#x} of id {}, {}; Vulkan {}; cache {}",
        facts.driver_version,
        facts.driver_id,
        hex(&facts.driver_uuid),
        shown(facts.version),
        hex(&facts.cache_uuid),
    );
    // A graphics card's UUID is its own, and equal cards share their kernels. The processor is the
    // same within a machine, and what it can do is told apart by nothing else.
    if facts.kind == vk::PhysicalDeviceType::CPU {
        versions.push_str(&format!("; device {}", hex(&facts.device_uuid)));
    }
    versions
}

/// The driver of those versions, with the variables as they are now.
pub(crate) fn of(versions: &str) -> Toolchain {
    Toolchain::new(versions).with_variables(steers)
}

/// The same text with whoever translates this spec in front, where somebody has to.
pub(crate) fn with_translator(spec: &KernelSpec, driver: &str) -> String {
    match compile::translator(spec) {
        Some(translator) => format!("{translator}; {driver}"),
        None => driver.to_owned(),
    }
}

/// Whether a variable may change what a driver's compiler makes.
fn steers(name: &str) -> bool {
    let starts = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
    starts(&PREFIXES) && !starts(&HARMLESS)
}

fn shown(version: u32) -> String {
    let (major, minor) = (vk::api_version_major(version), vk::api_version_minor(version));
    format!("{major}.{minor}.{}", vk::api_version_patch(version))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_that_change_the_code_count() {
        for name in ["RADV_DEBUG", "LP_NATIVE_VECTOR_WIDTH"] {
            assert!(steers(name), "{name}");
        }
        for name in ["MESA_SHADER_CACHE_DIR", "LP_NUM_THREADS", "HOME"] {
            assert!(!steers(name), "{name}");
        }
    }
}
