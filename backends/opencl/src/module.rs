//! A built program, and the native handles that it gives out.

use std::cell::Cell;
use std::ffi::CString;
use std::marker::PhantomData;

use grainstore_runtime::BackendError;
use opencl_sys::{cl_context, cl_device_id, cl_kernel, cl_program};

use crate::handle::Owned;
use crate::program::Program;

/// A program on its device. It keeps its context alive.
///
/// The handles it gives out are good while it lives; who needs one for longer retains it.
#[derive(Debug)]
pub struct OpenClModule {
    program: Program,
    kernels: Vec<String>,
}

impl OpenClModule {
    /// A module of a built program. `entry` must be among its kernels.
    pub(crate) fn new(program: Program, entry: Option<&str>) -> Result<Self, BackendError> {
        let module = Self { kernels: program.kernel_names()?, program };
        if let Some(entry) = entry {
            module.require(entry)?;
        }
        Ok(module)
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> cl_program {
        self.program.raw()
    }

    /// The context it lives in, for buffers and queues.
    #[must_use]
    pub fn context(&self) -> cl_context {
        self.program.place().context.raw()
    }

    /// The same with a reference of its own, for a caller who releases it with `clReleaseContext`.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub fn retained_context(&self) -> Result<cl_context, BackendError> {
        self.program.place().context.retained().map_err(BackendError::from)
    }

    /// The device it was built for.
    #[must_use]
    pub fn device(&self) -> cl_device_id {
        self.program.place().device.0
    }

    /// The names of its kernels, sorted.
    #[must_use]
    pub fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// A new kernel object of that name. Arguments are part of it, so each thread that launches
    /// needs one of its own.
    ///
    /// # Errors
    /// [`BackendError::NoEntryPoint`] with the names of the kernels that are there; whatever the
    /// driver says.
    pub fn kernel(&self, name: &str) -> Result<OpenClKernel, BackendError> {
        self.require(name)?;
        // A name with a NUL is no kernel's, so it was refused above.
        let name = CString::new(name).unwrap_or_default();
        Ok(OpenClKernel { owned: self.program.kernel(&name)?, one_thread: PhantomData })
    }

    /// The driver's binary of it, the one in its artifact; empty where the driver gives none.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub fn binary(&self) -> Result<Vec<u8>, BackendError> {
        self.program.binary().map_err(BackendError::from)
    }

    /// Releases the program.
    pub(crate) fn release(self) -> Result<(), BackendError> {
        self.program.release().map_err(BackendError::from)
    }

    fn require(&self, name: &str) -> Result<(), BackendError> {
        if self.kernels.iter().any(|kernel| kernel == name) {
            return Ok(());
        }
        Err(BackendError::NoEntryPoint { entry: name.to_owned(), available: self.kernels.clone() })
    }
}

/// A kernel object with its arguments. The driver keeps what it needs, so it may outlive its
/// module.
///
/// Setting arguments is the one thing in OpenCL that two threads may not do at once to the same
/// object; so it may be sent to another thread, but not shared.
#[derive(Debug)]
pub struct OpenClKernel {
    owned: Owned,
    one_thread: PhantomData<Cell<()>>,
}

impl OpenClKernel {
    /// The native handle, good while this lives.
    #[must_use]
    pub fn raw(&self) -> cl_kernel {
        self.owned.raw()
    }

    /// The native handle for a caller who releases it with `clReleaseKernel`.
    #[must_use]
    pub fn into_raw(self) -> cl_kernel {
        self.owned.into_raw()
    }
}
