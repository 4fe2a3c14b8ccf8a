//! A launch on an OpenCL device: a queue, two buffers, and the kernel over them.

use std::ffi::c_void;

use grainstore::DeviceId;
use grainstore_opencl::OpenClBackend;
use grainstore_runtime::{Backend, BackendError};
use opencl3::command_queue::{CommandQueue, create_command_queue};
use opencl3::error_codes::ClError;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE, create_buffer};
use opencl3::types::{CL_TRUE, cl_context};

use super::examine::{COUNT, FACTOR, Launch};

impl Launch for OpenClBackend {
    const SOURCE: &'static str = "\
kernel void saxpy(float a, global const float *x, global float *y) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}
";

    fn launch(
        &self,
        _: &DeviceId,
        module: &<Self as Backend>::Module,
        x: &[f32; COUNT],
        y: &mut [f32; COUNT],
    ) -> Result<(), BackendError> {
        let context = module.context();
        let kernel = Kernel::new(module.kernel("saxpy")?.into_raw());
        // SAFETY: context and device are alive while the module is, and belong together.
        let queue = unsafe { create_command_queue(context, module.device(), 0) }
            .map_err(|code| failed("clCreateCommandQueue", code))?;
        // Three dimensions are what every device has.
        let queue = CommandQueue::new(queue, 3);
        let (device_x, device_y) = (upload(context, x)?, upload(context, y)?);
        // SAFETY: the arguments are those of `SOURCE`, one work item for each number that both
        // buffers hold.
        unsafe {
            ExecuteKernel::new(&kernel)
                .set_arg(&FACTOR)
                .set_arg(&device_x)
                .set_arg(&device_y)
                .set_global_work_size(COUNT)
                .enqueue_nd_range(&queue)
        }
        .map_err(|error| failed("clEnqueueNDRangeKernel", error))?;
        // SAFETY: the read ends before the call does, into an array as large as the buffer.
        unsafe { queue.enqueue_read_buffer(&device_y, CL_TRUE, 0, y, &[]) }
            .map_err(|error| failed("clEnqueueReadBuffer", error))?;
        Ok(())
    }
}

fn upload(context: cl_context, numbers: &[f32; COUNT]) -> Result<Buffer<f32>, BackendError> {
    let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    let source: *const [f32; COUNT] = numbers;
    // SAFETY: the context is alive; the driver copies that many bytes from the array before it
    // returns, and writes none, whatever the parameter's type says.
    let memory = unsafe {
        create_buffer(context, flags, size_of_val(numbers), source.cast_mut().cast::<c_void>())
    };
    memory.map(Buffer::new).map_err(|code| failed("clCreateBuffer", code))
}

fn failed(call: &str, error: impl Into<ClError>) -> BackendError {
    BackendError::failed(call, error.into())
}
