//! Work on an OpenCL device that is reset in the middle of it, and goes on.
//!
//!     cargo run --package grainstore-examples --example device_reset
//!
//! A worker adds `a x` to `y` a few hundred times, with `y` on the device. Meanwhile an operator takes
//! the device away, first in good order, then as lost. What lived on it is gone then: buffers, queue,
//! modules. The worker notices at its next look-up, opens the device again, has its kernel back from
//! the disk, and goes on from its last checkpoint. The result is the one without any reset.

use std::error::Error;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use grainstore::{DeviceId, Family};
use grainstore_artifacts::ArtifactStore;
use grainstore_examples::absent;
use grainstore_opencl::{OpenClBackend, OpenClModule};
use grainstore_runtime::{Device, KernelSpec, Language, Runtime, RuntimeError};
use opencl3::command_queue::{CommandQueue, create_command_queue};
use opencl3::error_codes::ClError;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE, create_buffer};
use opencl3::types::{CL_TRUE, cl_uint};

type Failure = Box<dyn Error + Send + Sync>;

const DEVICE: DeviceId = DeviceId::new(Family::OPENCL, 0);
const LENGTH: usize = 100_000;
const STEPS: usize = 300;
/// How often the worker takes its numbers off the device.
const CHECKPOINT: usize = 25;
/// After which steps the operator comes.
const RESETS: [usize; 2] = [90, 210];
/// Elements that a work-item takes.
const VECTOR: usize = 4;

fn main() -> Result<(), Failure> {
    let runtime = Runtime::builder()
        .backend(OpenClBackend::new())
        .store(ArtifactStore::open_default()?)
        .build()?;
    if let Err(why) = runtime.device(&DEVICE) {
        // No driver: say so. The project's tests make that a failure where there should be one.
        return Ok(absent("opencl", why)?);
    }
    // Whoever keeps things by device hears when it goes: this is where memos are dropped.
    let _registration = runtime.hooks().on_device_destroy(|device| {
        println!("                 hooks: {device} goes");
        Ok::<_, RuntimeError>(())
    });

    // The worker waits for the operator to have seen each step, so that the resets come in the middle.
    let (progress, steps) = mpsc::sync_channel(0);
    let (y, resets) = thread::scope(|scope| {
        let runtime = &runtime;
        let worker = scope.spawn(move || Worker::new(runtime, progress)?.work());
        operate(runtime, &steps)?;
        worker.join().map_err(|_| "the worker panicked")?
    })?;

    // Small whole numbers: every step is exact.
    let right = y.iter().enumerate().all(|(i, y)| *y == element(i) * STEPS as f32);
    println!(
        "{LENGTH} elements after {resets} resets are {}",
        if right { "right" } else { "WRONG" }
    );
    // The kernels of the lost device were given up, not released.
    runtime.shutdown()?;
    if right && resets == RESETS.len() { Ok(()) } else { Err("work was lost".into()) }
}

/// What is added to an element in each step.
fn element(index: usize) -> f32 {
    (index % 1000) as f32
}

/// Takes the device away, twice, while it is in use.
fn operate(runtime: &Runtime, steps: &Receiver<usize>) -> Result<(), Failure> {
    let mut resets = 0;
    for step in steps {
        if RESETS.get(resets) != Some(&step) {
            continue;
        }
        let device = runtime.device(&DEVICE)?;
        if resets == 0 {
            // In good order. It waits for whoever has a kernel pinned just now.
            println!("operator, step {step:3}: destroys the device");
            runtime.destroy_device(&device)?;
        } else {
            // The driver has said that it is gone, and all handles with it.
            println!("operator, step {step:3}: the device is lost");
            runtime.device_lost(&device)?;
        }
        resets += 1;
    }
    Ok(())
}

struct Worker<'r> {
    runtime: &'r Runtime,
    spec: KernelSpec,
    progress: SyncSender<usize>,
    x: Vec<f32>,
    /// The numbers as they were after `saved` steps.
    y: Vec<f32>,
    saved: usize,
}

/// What the worker has on the device. It is of one life of the device, and goes with it.
struct OnDevice {
    device: Device,
    queue: CommandQueue,
    x: Buffer<f32>,
    y: Buffer<f32>,
}

impl<'r> Worker<'r> {
    fn new(runtime: &'r Runtime, progress: SyncSender<usize>) -> Result<Self, Failure> {
        let spec = KernelSpec::builder("saxpy", Language::OpenClC)
            .source(include_str!("../kernels/saxpy.cl"))
            .header("common.h", include_str!("../kernels/common.h"))
            .entry("saxpy")
            .define("VECTOR", VECTOR.to_string())
            .build()?;
        let x = (0..LENGTH).map(element).collect();
        Ok(Self { runtime, spec, progress, x, y: vec![0.0; LENGTH], saved: 0 })
    }

    /// Does all steps, and says how often the device was reset meanwhile.
    fn work(mut self) -> Result<(Vec<f32>, usize), Failure> {
        let mut resets = 0;
        while self.saved < STEPS {
            let on_device = self.set_up()?;
            match self.steps(&on_device) {
                Ok(()) => {}
                Err(error) if is_reset(&error) => {
                    println!("worker:           {error}; back to step {}", self.saved);
                    resets += 1;
                }
                Err(error) => return Err(error),
            }
        }
        Ok((self.y, resets))
    }

    /// A queue, and copies of what was saved.
    fn set_up(&self) -> Result<OnDevice, Failure> {
        let device = self.runtime.device(&DEVICE)?;
        let (kernel, outcome) = self.runtime.kernel_with_outcome(&device, &self.spec)?;
        println!(
            "worker:           life {} of the device, kernel from {} in {:.1?}",
            device.generation(),
            outcome.origin,
            outcome.elapsed
        );
        let module = kernel.module::<OpenClModule>().ok_or("OpenCL loads OpenCL modules")?;
        let buffer = |numbers: &[f32]| {
            let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
            let source = numbers.as_ptr().cast_mut().cast();
            // SAFETY: The context is alive while the module is; the driver copies the numbers.
            unsafe { create_buffer(module.context(), flags, size_of_val(numbers), source) }
                .map(Buffer::new)
                .map_err(ClError)
        };
        let (x, y) = (buffer(&self.x)?, buffer(&self.y)?);
        // SAFETY: The handles are alive while the module is, and the device is the context's. The
        // driver keeps the context for the queue and the buffers.
        let queue = unsafe { create_command_queue(module.context(), module.device(), 0) };
        let queue = CommandQueue::new(queue.map_err(ClError)?, 3);
        Ok(OnDevice { device, queue, x, y })
    }

    /// Steps until all are done, or the device is gone.
    fn steps(&mut self, on_device: &OnDevice) -> Result<(), Failure> {
        for step in self.saved + 1..=STEPS {
            // A hit costs nanoseconds, and says whether the device is still the one it was. While
            // the kernel is pinned, what it needs is there: a step that has begun is safe.
            let kernel = self.runtime.kernel(&on_device.device, &self.spec)?;
            let module = kernel.module::<OpenClModule>().ok_or("OpenCL loads OpenCL modules")?;
            on_device.launch(&Kernel::new(module.kernel("saxpy")?.into_raw()))?;
            if step % CHECKPOINT == 0 || step == STEPS {
                on_device.read(&mut self.y)?;
                self.saved = step;
            }
            // Not pinned while it waits for others: a teardown would wait for it.
            drop(kernel);
            // Nobody looks any more once the operator has failed.
            let _ = self.progress.send(step);
        }
        Ok(())
    }
}

impl OnDevice {
    /// `y = x + y`.
    fn launch(&self, kernel: &Kernel) -> Result<(), ClError> {
        // SAFETY: These are the arguments of `kernels/saxpy.cl`, which stays within the length; the
        // driver keeps kernel and buffers until it is done.
        unsafe {
            ExecuteKernel::new(kernel)
                .set_arg(&(LENGTH as cl_uint))
                .set_arg(&1.0_f32)
                .set_arg(&self.x)
                .set_arg(&self.y)
                .set_global_work_size(LENGTH.div_ceil(VECTOR))
                .enqueue_nd_range(&self.queue)?;
        }
        Ok(())
    }

    fn read(&self, y: &mut [f32]) -> Result<(), ClError> {
        // SAFETY: The read blocks, and the buffer is as long.
        unsafe { self.queue.enqueue_read_buffer(&self.y, CL_TRUE, 0, y, &[])? };
        Ok(())
    }
}

/// Whether this says that the device is another one now.
fn is_reset(error: &Failure) -> bool {
    matches!(error.downcast_ref(), Some(RuntimeError::DeviceDestroyed { .. }))
}
