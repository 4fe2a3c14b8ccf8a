//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use grainstore::DeviceId;
use grainstore_conformance::testing::{self, is_child};
use grainstore_opencl::{OpenClBackend, OpenClModule};
use grainstore_runtime::{KernelSpec, KernelSpecBuilder, Language};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE};
use opencl3::types::CL_TRUE;

pub(crate) const SAXPY: &str = "\
kernel void saxpy(float a, global const float *x, global float *y) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}
";

pub(crate) fn spec(source: &str) -> KernelSpecBuilder {
    KernelSpec::builder("saxpy", Language::OpenClC).source(source)
}

pub(crate) fn saxpy() -> KernelSpec {
    spec(SAXPY).entry("saxpy").build().unwrap()
}

/// Runs the body in a process of its own, with PoCL's cache off and its files in a folder of their
/// own: a driver reads its variables once. `test` is the calling test's name.
///
/// Without a driver the body does not run, and says so; where `GRAINSTORE_REQUIRE` names `opencl`,
/// that fails the test.
pub(crate) fn on_opencl(test: &str, body: impl FnOnce(&OpenClBackend, DeviceId)) {
    if is_child() {
        testing::on_device(test, &OpenClBackend::new(), body);
    } else {
        in_child(test, &[]);
    }
}

/// Says that a test did not run, and why; or fails it, where it had to run.
pub(crate) fn not_run(test: &str, reason: &str) {
    testing::not_run(test, "opencl", reason);
}

/// Runs one test of this test program in a process of its own, with these variables.
pub(crate) fn in_child(test: &str, variables: &[(&str, &str)]) {
    let cache = tempfile::tempdir().unwrap();
    testing::in_child(test, |command| {
        command.env("POCL_KERNEL_CACHE", "0").env("POCL_CACHE_DIR", cache.path());
        command.envs(variables.iter().copied());
    });
}

/// Runs a kernel that takes one buffer of numbers, an item each.
pub(crate) fn launch(module: &OpenClModule, kernel: &str, numbers: &[i32]) -> Vec<i32> {
    let context = Context::new(module.retained_context().unwrap(), &[module.device()]);
    let kernel = Kernel::new(module.kernel(kernel).unwrap().into_raw());
    let mut numbers = numbers.to_vec();
    // SAFETY: the buffer is as large as the list, and the tests' kernels take one buffer.
    unsafe {
        #[allow(deprecated, reason = "its successor needs OpenCL 2.0")]
        let queue = CommandQueue::create(&context, module.device(), 0).unwrap();
        let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
        let start = numbers.as_mut_ptr().cast();
        let buffer = Buffer::<i32>::create(&context, flags, numbers.len(), start).unwrap();
        ExecuteKernel::new(&kernel)
            .set_arg(&buffer)
            .set_global_work_size(numbers.len())
            .enqueue_nd_range(&queue)
            .unwrap();
        queue.enqueue_read_buffer(&buffer, CL_TRUE, 0, &mut numbers, &[]).unwrap();
    }
    numbers
}

/// Launches `saxpy` and checks the numbers.
pub(crate) fn check_saxpy(module: &OpenClModule) {
    let context = Context::new(module.retained_context().unwrap(), &[module.device()]);
    let kernel = Kernel::new(module.kernel("saxpy").unwrap().into_raw());
    let mut x: Vec<f32> = (0..256u16).map(f32::from).collect();
    let mut y = vec![1.0_f32; 256];
    // SAFETY: both buffers are as large as their lists; these are the kernel's arguments.
    unsafe {
        #[allow(deprecated, reason = "its successor needs OpenCL 2.0")]
        let queue = CommandQueue::create(&context, module.device(), 0).unwrap();
        let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
        let buffer = |list: &mut Vec<f32>| {
            Buffer::<f32>::create(&context, flags, list.len(), list.as_mut_ptr().cast()).unwrap()
        };
        let (left, right) = (buffer(&mut x), buffer(&mut y));
        ExecuteKernel::new(&kernel)
            .set_arg(&2.0_f32)
            .set_arg(&left)
            .set_arg(&right)
            .set_global_work_size(256)
            .enqueue_nd_range(&queue)
            .unwrap();
        queue.enqueue_read_buffer(&right, CL_TRUE, 0, &mut y, &[]).unwrap();
    }
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 2.0 * x + 1.0));
}
