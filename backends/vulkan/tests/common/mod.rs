//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub(crate) mod assembler;
pub(crate) mod launch;

use grainstore::DeviceId;
use grainstore_conformance::testing::{self, is_child};
use grainstore_runtime::{KernelSpec, KernelSpecBuilder, Language};
use grainstore_vulkan::VulkanBackend;

/// `y = a x + y`: two buffers, and `a` and the length among the push constants.
pub(crate) const SAXPY: &str = "\
struct Arguments { a: f32, n: u32 }
var<immediate> arguments: Arguments;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arguments.n {
        y[id.x] = arguments.a * x[id.x] + y[id.x];
    }
}
";

pub(crate) fn wgsl(source: &str) -> KernelSpecBuilder {
    KernelSpec::builder("saxpy", Language::Wgsl).source(source)
}

pub(crate) fn glsl(source: &str) -> KernelSpecBuilder {
    KernelSpec::builder("saxpy", Language::Glsl).source(source)
}

pub(crate) fn spirv(words: &[u32]) -> KernelSpecBuilder {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    KernelSpec::builder("saxpy", Language::SpirV).source(bytes)
}

pub(crate) fn saxpy() -> KernelSpec {
    wgsl(SAXPY).entry("saxpy").build().unwrap()
}

/// Runs the body in a process of its own, with Mesa's own cache off: a driver reads its variables
/// once. `test` is the calling test's name.
///
/// Without a driver the body does not run, and says so; where `GRAINSTORE_REQUIRE` names `vulkan`,
/// that fails the test.
pub(crate) fn on_vulkan(test: &str, body: impl FnOnce(&VulkanBackend, DeviceId)) {
    if is_child() {
        testing::on_device(test, &VulkanBackend::new(), body);
    } else {
        in_child(test, &[]);
    }
}

/// Runs one test of this test program in a process of its own, with these variables.
pub(crate) fn in_child(test: &str, variables: &[(&str, &str)]) {
    testing::in_child(test, |command| {
        command.env("MESA_SHADER_CACHE_DISABLE", "true").envs(variables.iter().copied());
    });
}
