//! What Vulkan's results mean to a caller.

use ash::vk;
use grainstore_runtime::BackendError;

/// Makes an error of what a call returned, with the call's name.
pub(crate) fn failed(call: &'static str) -> impl FnOnce(vk::Result) -> BackendError {
    move |result| match result {
        vk::Result::ERROR_DEVICE_LOST => BackendError::DeviceLost { message: said(call, result) },
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => BackendError::missing(
            "a Vulkan driver",
            "install that of your device's vendor, or one for the processor (on Debian \
             `mesa-vulkan-drivers`); a driver's `.json` file may be named with the variable \
             `VK_DRIVER_FILES`, or `VK_ICD_FILENAMES` for older loaders",
        ),
        _ => BackendError::failed(call, name(result)),
    }
}

fn said(call: &str, result: vk::Result) -> String {
    format!("{call}: {}", name(result))
}

/// The name in `vulkan_core.h`, and the number.
pub(crate) fn name(result: vk::Result) -> String {
    let name = match result {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => "VK_ERROR_OUT_OF_HOST_MEMORY",
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => "VK_ERROR_OUT_OF_DEVICE_MEMORY",
        vk::Result::ERROR_INITIALIZATION_FAILED => "VK_ERROR_INITIALIZATION_FAILED",
        vk::Result::ERROR_DEVICE_LOST => "VK_ERROR_DEVICE_LOST",
        vk::Result::ERROR_LAYER_NOT_PRESENT => "VK_ERROR_LAYER_NOT_PRESENT",
        vk::Result::ERROR_EXTENSION_NOT_PRESENT => "VK_ERROR_EXTENSION_NOT_PRESENT",
        vk::Result::ERROR_FEATURE_NOT_PRESENT => "VK_ERROR_FEATURE_NOT_PRESENT",
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => "VK_ERROR_INCOMPATIBLE_DRIVER",
        vk::Result::ERROR_TOO_MANY_OBJECTS => "VK_ERROR_TOO_MANY_OBJECTS",
        vk::Result::ERROR_FRAGMENTATION => "VK_ERROR_FRAGMENTATION",
        vk::Result::ERROR_UNKNOWN => "VK_ERROR_UNKNOWN",
        vk::Result::ERROR_INVALID_SHADER_NV => "VK_ERROR_INVALID_SHADER_NV",
        _ => "a result that a compute pipeline should not meet",
    };
    format!("{name} ({})", result.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_device_and_a_missing_driver_are_told_from_failures() {
        let error = failed("vkCreateDevice")(vk::Result::ERROR_DEVICE_LOST);
        assert!(matches!(error, BackendError::DeviceLost { .. }), "{error}");
        let error = failed("vkCreateInstance")(vk::Result::ERROR_INCOMPATIBLE_DRIVER);
        assert!(matches!(error, BackendError::Missing { .. }), "{error}");
        let error = failed("vkCreateDevice")(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        let text = error.to_string();
        assert_eq!(text, "vkCreateDevice failed: VK_ERROR_OUT_OF_DEVICE_MEMORY (-2)");
    }
}
