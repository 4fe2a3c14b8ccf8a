//! Finds Vulkan's loader library.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;

use ash::Entry;
use grainstore_runtime::BackendError;

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

/// Loads the library: the one chosen, or else the system's.
pub(crate) fn load(chosen: Option<&PathBuf>) -> Result<Entry, BackendError> {
    let paths: Vec<OsString> = match (chosen, env::var_os(VARIABLE).filter(|text| !text.is_empty()))
    {
        (Some(path), _) => vec![path.into()],
        (None, Some(path)) => vec![path],
        (None, None) => NAMES.iter().map(Into::into).collect(),
    };
    let mut refusals = Vec::new();
    for path in &paths {
        // SAFETY: loading runs the library's start-up code. It is Vulkan's loader by the system's
        // or the user's own word.
        match unsafe { Entry::load_from(path) } {
            Ok(entry) => {
                // It stays for the life of the process: drivers start threads that run its code.
                std::mem::forget(entry.clone());
                return Ok(entry);
            }
            Err(error) => {
                // The library's own words are at the bottom.
                let mut words: &dyn Error = &error;
                while let Some(below) = words.source() {
                    words = below;
                }
                refusals.push(format!("`{}` ({words})", path.to_string_lossy()));
            }
        }
    }
    Err(BackendError::missing(
        format!("Vulkan's loader library, {},", refusals.join(", ")),
        format!(
            "install it (on Debian `libvulkan1`, and a driver such as `mesa-vulkan-drivers`), or \
             give its path with the variable `{VARIABLE}` or the builder's `library`"
        ),
    ))
}
