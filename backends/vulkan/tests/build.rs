//! From a spec to a pipeline that computes, on whatever Vulkan driver is there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{check_saxpy, on_vulkan, saxpy};
use grainstore_runtime::Backend;

#[test]
fn a_kernel_is_built_and_computes() {
    on_vulkan("a_kernel_is_built_and_computes", |vulkan, device| {
        let target = vulkan.target(&device).unwrap();
        eprintln!("{}\n{}", target.as_str(), vulkan.toolchain(&target).unwrap().as_str());
        let (module, artifact) = vulkan.build(&device, &saxpy()).unwrap();
        check_saxpy(&module);
        let _ = artifact;
        vulkan.unload(module).unwrap();
    });
}
