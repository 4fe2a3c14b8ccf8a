//! `y = a x + y` on an OpenCL device: the kernel through the cache, the launch with `opencl3`.
//!
//!     cargo run --package grainstore-examples --example saxpy_opencl
//!
//! Run it twice: the second time, the kernel comes from the disk.

use std::error::Error;

use grainstore::{DeviceId, Family};
use grainstore_artifacts::ArtifactStore;
use grainstore_examples::absent;
use grainstore_opencl::{OpenClBackend, OpenClModule};
use grainstore_runtime::{KernelSpec, Language, Runtime};
use opencl3::command_queue::{CommandQueue, create_command_queue};
use opencl3::error_codes::ClError;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE, create_buffer};
use opencl3::types::{CL_TRUE, cl_uint};

/// Elements that a work-item takes.
const VECTOR: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder()
        .backend(OpenClBackend::new())
        .store(ArtifactStore::open_default()?)
        .build()?;
    let device = match runtime.device(&DeviceId::new(Family::OPENCL, 0)) {
        Ok(device) => device,
        // No driver: say so. The project's tests make that a failure where there should be one.
        Err(why) => return Ok(absent("opencl", why)?),
    };
    println!("{device}");
    let spec = KernelSpec::builder("saxpy", Language::OpenClC)
        .source(include_str!("../kernels/saxpy.cl"))
        .header("common.h", include_str!("../kernels/common.h"))
        .entry("saxpy")
        .define("VECTOR", VECTOR.to_string())
        .option("-cl-fast-relaxed-math")
        .build()?;

    let x: Vec<f32> = (0..1_000_003).map(|i| (i % 1000) as f32).collect();
    let mut y = vec![1.0_f32; x.len()];
    for _ in 0..2 {
        let (kernel, outcome) = runtime.kernel_with_outcome(&device, &spec)?;
        println!("from {} in {:.1?}", outcome.origin, outcome.elapsed);
        let module = kernel.module::<OpenClModule>().ok_or("OpenCL loads OpenCL modules")?;
        let kernel = Kernel::new(module.kernel("saxpy")?.into_raw());
        saxpy(module, &kernel, 2.0, &x, &mut y)?;
    }

    // Small whole numbers: every step is exact.
    let right = x.iter().zip(&y).all(|(x, y)| *y == 4.0 * x + 1.0);
    println!("{} elements are {}", y.len(), if right { "right" } else { "WRONG" });
    runtime.shutdown()?;
    if right { Ok(()) } else { Err("saxpy computed something else".into()) }
}

/// One launch. An application keeps queue and buffers; only the kernel is the cache's business.
fn saxpy(
    module: &OpenClModule,
    kernel: &Kernel,
    a: f32,
    x: &[f32],
    y: &mut [f32],
) -> Result<(), ClError> {
    let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    // SAFETY: The handles are alive while the module is, and the device is the context's. The buffers
    // are copies of x and y; the arguments are those of `kernels/saxpy.cl`, which stays within n.
    unsafe {
        let queue = create_command_queue(module.context(), module.device(), 0)?;
        let queue = CommandQueue::new(queue, 3);
        let buffer = |elements: &[f32]| {
            let source = elements.as_ptr().cast_mut().cast();
            create_buffer(module.context(), flags, size_of_val(elements), source)
        };
        let (x, on_device) = (Buffer::<f32>::new(buffer(x)?), Buffer::<f32>::new(buffer(y)?));
        ExecuteKernel::new(kernel)
            .set_arg(&(y.len() as cl_uint))
            .set_arg(&a)
            .set_arg(&x)
            .set_arg(&on_device)
            .set_global_work_size(y.len().div_ceil(VECTOR))
            .enqueue_nd_range(&queue)?;
        queue.enqueue_read_buffer(&on_device, CL_TRUE, 0, y, &[])?;
    }
    Ok(())
}
