//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub(crate) mod assembler;
pub(crate) mod launch;

use std::env;
use std::io::Write;
use std::process::{Command, Output};

use grainstore::DeviceId;
use grainstore_runtime::{Backend, BackendError, KernelSpec, KernelSpecBuilder, Language};
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
    if !is_child() {
        print_output(&in_child(test, &[]));
        return;
    }
    let backend = VulkanBackend::new();
    match backend.devices() {
        Ok(devices) => match devices.first() {
            Some(device) => body(&backend, device.id),
            None => not_run(test, "the drivers that are there have no device"),
        },
        Err(missing @ BackendError::Missing { .. }) => not_run(test, &missing.to_string()),
        Err(other) => panic!("{other}"),
    }
}

/// Says that a test did not run, and why; or fails it, where it had to run.
pub(crate) fn not_run(test: &str, reason: &str) {
    let required = env::var("GRAINSTORE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == "vulkan"), "{test}: {reason}");
    say(&format!("not run: {test}: {reason}"));
}

/// Runs one test of this test binary in a process of its own, with these variables. There
/// [`is_child`] is true, and what is asserted there fails here.
pub(crate) fn in_child(test: &str, variables: &[(&str, &str)]) -> Output {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("GRAINSTORE_TEST_CHILD", "1")
        .env("MESA_SHADER_CACHE_DISABLE", "true")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{test} failed in its own process ({}):\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Passes on what a child says that it did not run.
pub(crate) fn print_output(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| line.starts_with("not run: ")).for_each(say);
}

/// Past the test harness, which keeps what tests print to itself when they pass.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

pub(crate) fn is_child() -> bool {
    env::var_os("GRAINSTORE_TEST_CHILD").is_some()
}
