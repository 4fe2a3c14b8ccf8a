//! The battery of tests that every backend passes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use common::launch::try_launch;
use common::{glsl, wgsl};
use grainstore_conformance::{BoxError, Cannot, Subject};
use grainstore_runtime::{BackendError, KernelSpec};
use grainstore_vulkan::{VulkanBackend, VulkanModule};

/// The first device of whatever driver is here.
struct Vulkan;

/// The kernel; its number is called `add`.
const ADD: &str = "\
@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&numbers) {
        numbers[id.x] += add;
    }
}
";

/// The same, for a language that has defines.
const ADD_GLSL: &str = "\
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Numbers { uint numbers[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < numbers.length()) numbers[i] += ADD;
}
";

impl Subject for Vulkan {
    type Backend = VulkanBackend;

    fn name(&self) -> &str {
        "vulkan"
    }

    fn backend(&self) -> Result<VulkanBackend, BackendError> {
        Ok(VulkanBackend::new())
    }

    fn kernel(&self, add: u32) -> KernelSpec {
        wgsl(&format!("const add = {add}u;\n{ADD}")).entry("main").build().unwrap()
    }

    fn wrong(&self) -> KernelSpec {
        wgsl(&format!("const add = mistake;\n{ADD}")).entry("main").build().unwrap()
    }

    fn launch(&self, module: &VulkanModule, input: &[u32]) -> Result<Vec<u32>, BoxError> {
        let groups = u32::try_from(input.len().div_ceil(64))?;
        Ok(try_launch(module, &[input], &[], groups)?.remove(0))
    }

    fn live_handles(&self, backend: &VulkanBackend) -> usize {
        backend.live_handles()
    }

    fn with_header(&self, _: u32) -> Result<KernelSpec, Cannot> {
        Err(Cannot::because("neither WGSL nor naga's GLSL has headers"))
    }

    fn with_define(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Ok(glsl(ADD_GLSL).define("ADD", format!("{add}u")).entry("main").build().unwrap())
    }

    fn with_option(&self, _: u32) -> Result<KernelSpec, Cannot> {
        Err(Cannot::because("the options are switches, and take no number"))
    }

    fn with_constant(&self, add: u32) -> Result<KernelSpec, Cannot> {
        let source = format!("override add: u32;\n{ADD}");
        Ok(wgsl(&source).constant("add", add.to_string()).entry("main").build().unwrap())
    }

    fn without_library(&self, nowhere: &Path) -> Result<VulkanBackend, Cannot> {
        Ok(VulkanBackend::builder().library(nowhere).build())
    }
}

fn main() -> ExitCode {
    // Mesa's own cache on disk would make every build but the first a load.
    // SAFETY: no other thread is there yet.
    unsafe { env::set_var("MESA_SHADER_CACHE_DISABLE", "true") };
    grainstore_conformance::main(Vulkan)
}
