//! Finds Vulkan's loader library.

use std::path::Path;

use ash::Entry;
use grainstore_runtime::BackendError;
use grainstore_runtime::parts::{candidates, first_that_loads};

/// Where the library is, for those who have it elsewhere. The field has no variable for this.
const VARIABLE: &str = "GRAINSTORE_VULKAN_LIBRARY";

/// The system's own, the preferred name first.
const NAMES: &[&str] = if cfg!(windows) {
    &["vulkan-1.dll"]
} else if cfg!(target_vendor = "apple") {
    &["libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"]
} else {
    &["libvulkan.so.1", "libvulkan.so"]
};

/// Loads the library: the one chosen, or else the one that the variable or the system knows.
pub(crate) fn load(chosen: Option<&Path>) -> Result<Entry, BackendError> {
    let paths = candidates(chosen, VARIABLE, NAMES);
    // SAFETY: loading runs the library's start-up code. It is Vulkan's loader by the system's or the
    // user's own word.
    let entry = first_that_loads(&paths, |path| unsafe { Entry::load_from(path) });
    let entry = entry.map_err(|why| {
        BackendError::missing(
            format!("Vulkan's loader library, {why},"),
            format!(
                "install it (on Debian `libvulkan1`, and a driver such as `mesa-vulkan-drivers`), \
                 or give its path with the variable `{VARIABLE}` or the builder's `library`"
            ),
        )
    })?;
    // It stays for the life of the process: drivers start threads that run its code.
    std::mem::forget(entry.clone());
    Ok(entry)
}
