//! Launches on an OpenCL device: buffers, arguments, a queue.

use std::ptr;

use grainstore_opencl::OpenClModule;
use opencl3::command_queue::{CommandQueue, create_command_queue};
use opencl3::error_codes::ClError;
use opencl3::kernel::Kernel;
use opencl3::memory::{self, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE, ClMem, create_buffer};
use opencl3::types::{CL_TRUE, cl_uint};

use crate::{CaseError, Element, margin};

/// A program on its device, with an in-order queue: each launch sees what the ones before it wrote.
#[derive(Debug)]
pub struct Session<'a> {
    module: &'a OpenClModule,
    queue: CommandQueue,
}

/// Elements in the device's memory.
#[derive(Debug)]
pub(crate) struct Buffer<T> {
    memory: memory::Buffer<T>,
    len: usize,
}

impl<T> Buffer<T> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

/// An argument of a kernel, as its source declares it.
pub(crate) enum Arg<'a, T> {
    /// A `uint`: a count or an extent.
    Size(usize),
    /// A `T` by value.
    Value(T),
    /// A `global T *`.
    Buffer(&'a Buffer<T>),
}

fn failed(call: &'static str, error: impl Into<ClError>) -> CaseError {
    CaseError::Driver { call, message: error.into().to_string() }
}

impl<'a> Session<'a> {
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

    /// A buffer that holds a copy of these elements.
    pub(crate) fn upload<T: Element>(&self, elements: &[T]) -> Result<Buffer<T>, CaseError> {
        self.create(&margin::extend(elements), elements.len())
    }

    /// A buffer for results.
    pub(crate) fn output<T: Element>(&self, len: usize) -> Result<Buffer<T>, CaseError> {
        self.create(&margin::room(len), len)
    }

    /// A buffer of `len` elements and their margin.
    fn create<T: Element>(&self, extended: &[T], len: usize) -> Result<Buffer<T>, CaseError> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
        let bytes = size_of_val(extended);
        let source = extended.as_ptr().cast_mut().cast();
        // SAFETY: The context is alive while the module is; the driver copies so many bytes before
        // it returns, and writes none.
        let memory = unsafe { create_buffer(self.module.context(), flags, bytes, source) }
            .map_err(|code| failed("clCreateBuffer", code))?;
        Ok(Buffer { memory: memory::Buffer::new(memory), len })
    }

    /// The elements of a buffer, when all launches before are done.
    pub(crate) fn download<T: Element>(&self, buffer: &Buffer<T>) -> Result<Vec<T>, CaseError> {
        let mut extended = margin::room(buffer.len);
        // SAFETY: The read blocks, and the vector is as long as the buffer, margin included.
        unsafe { self.queue.enqueue_read_buffer(&buffer.memory, CL_TRUE, 0, &mut extended, &[]) }
            .map_err(|error| failed("clEnqueueReadBuffer", error))?;
        margin::trim(extended)
    }

    /// Enqueues a kernel of the program.
    ///
    /// # Safety
    /// The arguments are those that the kernel's source declares, and it stays within the buffers.
    pub(crate) unsafe fn launch<T: Element, const DIMENSIONS: usize>(
        &self,
        name: &str,
        global: [usize; DIMENSIONS],
        local: [usize; DIMENSIONS],
        args: &[Arg<'_, T>],
    ) -> Result<(), CaseError> {
        let kernel = Kernel::new(self.module.kernel(name)?.into_raw());
        for (index, arg) in (0..).zip(args) {
            // SAFETY: The caller promises that the source declares an argument of this kind here.
            unsafe {
                match arg {
                    Arg::Size(size) => kernel.set_arg(index, &(*size as cl_uint)),
                    Arg::Value(value) => kernel.set_arg(index, value),
                    Arg::Buffer(buffer) => kernel.set_arg(index, &buffer.memory.get()),
                }
            }
            .map_err(|error| failed("clSetKernelArg", error))?;
        }
        // SAFETY: All arguments are set, and the driver keeps kernel and buffers until it is done;
        // global and local size are read before it returns.
        unsafe {
            self.queue.enqueue_nd_range_kernel(
                kernel.get(),
                DIMENSIONS as cl_uint,
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
