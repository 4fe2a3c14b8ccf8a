//! Launches on an OpenCL device: buffers, arguments, a queue.

use std::ptr;

use grainstore_opencl::OpenClModule;
use opencl3::command_queue::{CommandQueue, create_command_queue};
use opencl3::error_codes::ClError;
use opencl3::kernel::{Kernel, set_kernel_arg};
use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE, ClMem, create_buffer};
use opencl3::types::{CL_TRUE, cl_uint};

use crate::CaseError;
use crate::gpu::{Gpu, Plain};

/// A program on its device, with an in-order queue: each launch sees what the ones before it wrote.
#[derive(Debug)]
pub struct OpenClSession<'a> {
    module: &'a OpenClModule,
    queue: CommandQueue,
}

fn failed(call: &'static str, error: impl Into<ClError>) -> CaseError {
    CaseError::Driver { call, message: error.into().to_string() }
}

impl<'a> OpenClSession<'a> {
    /// A queue of its own for this module.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(module: &'a OpenClModule) -> Result<Self, CaseError> {
        // SAFETY: The handles are alive while the module is, and the device is the context's.
        let queue = unsafe { create_command_queue(module.context(), module.device(), 0) }
            .map_err(|code| failed("clCreateCommandQueue", code))?;
        // Every device has three dimensions.
        Ok(Self { module, queue: CommandQueue::new(queue, 3) })
    }
}

impl Gpu for OpenClSession<'_> {
    type Memory = Buffer<u8>;

    fn create(&self, content: &[u8]) -> Result<Buffer<u8>, CaseError> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
        let source = content.as_ptr().cast_mut().cast();
        // SAFETY: The context is alive while the module is; the driver copies so many bytes before
        // it returns, and writes none.
        let memory = unsafe { create_buffer(self.module.context(), flags, content.len(), source) }
            .map_err(|code| failed("clCreateBuffer", code))?;
        Ok(Buffer::new(memory))
    }

    fn read(&self, memory: &Buffer<u8>, content: &mut [u8]) -> Result<(), CaseError> {
        // SAFETY: The read blocks, and the driver checks that the buffer is as long.
        unsafe { self.queue.enqueue_read_buffer(memory, CL_TRUE, 0, content, &[]) }
            .map(drop)
            .map_err(|error| failed("clEnqueueReadBuffer", error))
    }

    unsafe fn enqueue(
        &self,
        function: &str,
        groups: [usize; 3],
        local: [usize; 3],
        arguments: &[Plain<'_, Buffer<u8>>],
    ) -> Result<(), CaseError> {
        let kernel = Kernel::new(self.module.kernel(function)?.into_raw());
        for (index, argument) in (0..).zip(arguments) {
            // SAFETY: The caller promises that the source declares an argument of this kind here;
            // the driver copies what it is given.
            unsafe {
                match argument {
                    Plain::Number(bytes) => {
                        set_kernel_arg(kernel.get(), index, bytes.len(), bytes.as_ptr().cast())
                            .map_err(|code| failed("clSetKernelArg", code))
                    }
                    Plain::Memory(buffer) => kernel
                        .set_arg(index, &buffer.get())
                        .map_err(|error| failed("clSetKernelArg", error)),
                }
            }?;
        }
        let global = [0, 1, 2].map(|dimension| groups[dimension] * local[dimension]);
        // SAFETY: All arguments are set, and the driver keeps kernel and buffers until it is done;
        // global and local size are read before it returns.
        unsafe {
            self.queue.enqueue_nd_range_kernel(
                kernel.get(),
                global.len() as cl_uint,
                ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                &[],
            )
        }
        .map(drop)
        .map_err(|error| failed("clEnqueueNDRangeKernel", error))
    }
}
