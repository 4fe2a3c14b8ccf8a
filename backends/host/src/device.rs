//! The one device of this backend: the processor, and what its code is made for.

use std::env::consts::{ARCH, OS};

use grainstore::{DeviceId, Family};
use grainstore_runtime::{BackendError, Target};

/// The only device there is.
pub(crate) const DEVICE: DeviceId = DeviceId::new(Family::HOST, 0);

/// Says so if `device` is another one.
pub(crate) fn check(device: &DeviceId) -> Result<(), BackendError> {
    if *device == DEVICE {
        return Ok(());
    }
    Err(BackendError::no_device(device, [DEVICE]))
}

/// The kind of object code that this very process can load.
pub(crate) fn target() -> Target {
    let environment = if cfg!(target_env = "musl") {
        "-musl"
    } else if cfg!(target_env = "msvc") {
        "-msvc"
    } else if cfg!(target_env = "gnu") {
        "-gnu"
    } else {
        ""
    };
    Target::new(format!("{ARCH}-{OS}{environment}"))
}

/// The C library that compiled code will call, where it can be asked.
pub(crate) fn c_library() -> Option<String> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // The loader of the process knows its own version; a file name on disk may lag behind.
        crate::module::glibc_version().map(|version| format!("glibc {version}"))
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// The processor's name, for people.
pub(crate) fn processor() -> String {
    let name = if cfg!(target_os = "linux") {
        std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| model_name(&text))
    } else if cfg!(target_os = "windows") {
        std::env::var("PROCESSOR_IDENTIFIER").ok()
    } else {
        None
    };
    name.unwrap_or_else(|| format!("{ARCH} processor"))
}

/// The model in the text of `/proc/cpuinfo`. ARM kernels give numbers instead of a name.
fn model_name(cpuinfo: &str) -> Option<String> {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, value)| key.trim() == "model name" && !value.trim().is_empty())
        .map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_from_cpuinfo() {
        let text = "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC\nflags\t: fpu\n";
        assert_eq!(model_name(text).as_deref(), Some("AMD EPYC"));
        assert_eq!(model_name("processor\t: 0\nFeatures\t: fp asimd\n"), None);
    }
}
