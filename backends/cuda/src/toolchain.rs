//! Who makes the code of a kernel, as keys say it.

use grainstore_runtime::{BackendError, Language, Toolchain};

use crate::driver::Driver;
use crate::nvrtc::Nvrtc;

/// How the variables begin that steer NVRTC and what it is made of.
const PREFIXES: [&str; 3] = ["LIBNVVM_", "NVRTC_", "NVVM_"];

/// Those of them that have nothing to do with the code.
const HARMLESS: [&str; 6] = [
    "LIBNVVM_DISABLE_CONCURRENT_API",
    "NVRTC_DISABLE_CONCURRENT_NVVM",
    "NVRTC_DISABLE_PCH",
    "NVRTC_INTERNAL_GLOBAL_LOCK",
    "NVRTC_PCH_HEAP_SIZE",
    "NVVM_IR_VER_CHK",
];

/// The compiler, with the variables as they are now.
pub(crate) fn of_nvrtc(nvrtc: &Nvrtc) -> Toolchain {
    Toolchain::new(nvrtc.identity.as_str()).with_variables(steers)
}

/// A machine with a driver and no compiler: it runs what is ready-made.
pub(crate) fn of_driver_alone(driver: &Driver) -> Toolchain {
    Toolchain::new(format!("no nvrtc; CUDA driver {}", driver.version()))
}

/// For what is ready-made: the driver where it makes machine code of it, and else nobody.
pub(crate) fn of_ready_made(
    language: Language,
    assembler: Option<&Driver>,
) -> Result<Toolchain, BackendError> {
    Ok(Toolchain::new(match assembler {
        Some(driver) => format!("{language}, assembled by CUDA driver {}", driver.version()),
        None => format!("{language} as it is"),
    }))
}

/// Whether a variable may change what the compiler makes.
fn steers(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !HARMLESS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_that_change_the_code_count() {
        for name in ["NVRTC_X", "NVVM_A"] {
            assert!(steers(name), "{name}");
        }
        for name in ["NVRTC_PCH_HEAP_SIZE", "CUDA_VISIBLE_DEVICES", "HOME"] {
            assert!(!steers(name), "{name}");
        }
    }
}
