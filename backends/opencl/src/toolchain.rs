//! Who makes the code of a kernel, as keys say it.

use grainstore_runtime::Toolchain;
use grainstore_runtime::parts::digest_of_names;

/// How the variables begin that steer the compilers of the known drivers.
const PREFIXES: [&str; 5] = ["AMD_OCL_", "CL_CONFIG_", "IGC_", "POCL_", "RUSTICL_"];

/// Those of them that have nothing to do with the code.
const HARMLESS: [&str; 9] = [
    "POCL_AFFINITY",
    // Which local sizes a binary holds code for beside the code for any: more of the same.
    "POCL_BINARY_SPECIALIZE_WG",
    "POCL_CACHE_DIR",
    "POCL_DEBUG",
    "POCL_DEVICES",
    "POCL_KERNEL_CACHE",
    "POCL_LEAVE_KERNEL_COMPILER_TEMP_FILES",
    "POCL_MEMORY_LIMIT",
    "POCL_TRACING",
];

/// What a device's driver says of itself, without the variables, which may change.
pub(crate) fn versions(
    platform: &str,
    platform_version: &str,
    driver_version: &str,
    extensions: &str,
) -> String {
    let extensions = digest_of_names(extensions.split_whitespace());
    format!("{platform} {platform_version}; driver {driver_version}; extensions {extensions}")
}

/// The driver of those versions, with the variables as they are now.
pub(crate) fn of(versions: &str) -> Toolchain {
    Toolchain::new(versions).with_variables(steers)
}

/// Whether a variable may change what a driver's compiler makes.
fn steers(name: &str) -> bool {
    let starts = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
    starts(&PREFIXES) && !starts(&HARMLESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_extensions_means_nothing() {
        assert_eq!(versions("p", "1", "2", "a  b c"), versions("p", "1", "2", "c b a"));
        assert_ne!(versions("p", "1", "2", "a b"), versions("p", "1", "2", "ab"));
    }

    #[test]
    fn only_variables_that_change_the_code_count() {
        for name in ["POCL_WORK_GROUP_METHOD", "IGC_ShaderDumpEnable"] {
            assert!(steers(name), "{name}");
        }
        for name in ["POCL_CACHE_DIR", "POCL_BINARY_SPECIALIZE_WG", "HOME"] {
            assert!(!steers(name), "{name}");
        }
    }
}
