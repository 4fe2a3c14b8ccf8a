//! A machine without Vulkan: an error that says what would help, never a panic.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{in_child, on_vulkan, saxpy};
use grainstore::{DeviceId, Family};
use grainstore_conformance::testing::is_child;
use grainstore_runtime::{Backend, BackendError};
use grainstore_vulkan::VulkanBackend;

const DEVICE: DeviceId = DeviceId::new(Family::VULKAN, 0);

/// Every call says the same; here it is.
fn missing(vulkan: &VulkanBackend) -> String {
    vulkan.destroy_device(&DEVICE).unwrap();
    let errors = [
        vulkan.target(&DEVICE).unwrap_err(),
        vulkan.build(&DEVICE, &saxpy()).unwrap_err(),
        vulkan.devices().unwrap_err(),
    ];
    for error in &errors {
        assert!(matches!(error, BackendError::Missing { .. }), "{error}");
    }
    errors[2].to_string()
}

#[test]
fn a_missing_library_says_what_would_help() {
    let text = missing(&VulkanBackend::builder().library("/nowhere/libvulkan.so.1").build());
    for word in ["`/nowhere/libvulkan.so.1`", "libvulkan1", "`GRAINSTORE_VULKAN_LIBRARY`"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn the_variable_for_the_library_is_heeded() {
    let test = "the_variable_for_the_library_is_heeded";
    if !is_child() {
        in_child(test, &[("GRAINSTORE_VULKAN_LIBRARY", "/nowhere/a.so")]);
        return;
    }
    let text = missing(&VulkanBackend::new());
    assert!(text.contains("/nowhere/a.so"), "{text}");
    let text = missing(&VulkanBackend::builder().library("/nowhere/b.so").build());
    assert!(text.contains("/nowhere/b.so") && !text.contains("a.so"), "{text}");
}

#[test]
fn a_library_that_is_none_is_missing_too() {
    // The C library is surely there, and surely no Vulkan.
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        let text = missing(&VulkanBackend::builder().library("libc.so.6").build());
        assert!(text.contains("`libc.so.6`"), "{text}");
    }
}

#[test]
fn a_missing_driver_says_what_would_help() {
    let test = "a_missing_driver_says_what_would_help";
    if std::env::var_os("NO_DRIVER").is_some() {
        let text = missing(&VulkanBackend::new());
        assert!(text.contains("mesa-vulkan-drivers") && text.contains("VK_DRIVER_FILES"), "{text}");
        return;
    }
    // Only where there is a driver that can be hidden.
    on_vulkan(test, |_, _| {
        let nowhere = "/nowhere/icd.json";
        let variables =
            [("VK_DRIVER_FILES", nowhere), ("VK_ICD_FILENAMES", nowhere), ("NO_DRIVER", "1")];
        in_child(test, &variables);
    });
}

#[test]
fn no_device_is_needed_to_translate() {
    let words = grainstore_vulkan::to_spirv(&saxpy()).unwrap();
    assert_eq!(words[0], 0x0723_0203);
}
