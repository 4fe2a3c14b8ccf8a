//! A loaded module, and the native handles that it gives out.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

use grainstore::Framework;
use grainstore_runtime::BackendError;

use crate::loaded::Loaded;
use crate::names::Names;
use crate::status::NOT_FOUND;
use crate::target::Code;

/// `CUcontext`, `CUmodule` and `CUfunction`, whatever crate they are used with: cast the pointer.
pub type RawHandle = *mut c_void;

/// A module on its device. It keeps its context alive.
///
/// The handles it gives out are good while it lives.
#[derive(Debug)]
pub struct CudaModule {
    loaded: Loaded,
    code: Code,
    names: Names,
}

impl CudaModule {
    /// A module of what was loaded. `entry` must be among its kernels.
    pub(crate) fn new(
        loaded: Loaded,
        code: Code,
        names: Names,
        entry: Option<&str>,
    ) -> Result<Self, BackendError> {
        let module = Self { loaded, code, names };
        if let Some(entry) = entry {
            // Drivers load code at the first use: what is wrong with it shows here and not later.
            module.function(entry)?;
        }
        Ok(module)
    }

    /// The module, a `CUmodule`.
    #[must_use]
    pub fn module(&self) -> RawHandle {
        self.loaded.raw()
    }

    /// The context it lives in, a `CUcontext`: the device's primary one, or the application's. Make
    /// it current for memory and launches.
    #[must_use]
    pub fn context(&self) -> RawHandle {
        self.loaded.context().raw()
    }

    /// The device it was loaded on, a `CUdevice`.
    #[must_use]
    pub fn device(&self) -> i32 {
        self.loaded.context().device()
    }

    /// The form of its code, as it was given to the driver.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The framework it goes through: `CUDA/CUBIN` or `CUDA/PTX`.
    #[must_use]
    pub fn framework(&self) -> Framework {
        self.code.framework()
    }

    /// The names of its kernels in the code, sorted. Those of C++ are mangled.
    #[must_use]
    pub fn kernels(&self) -> &[String] {
        &self.names.kernels
    }

    /// A kernel, a `CUfunction`: by its name in the code, or by the spec's entry point as it was
    /// written there, such as `scale<float, 4>`. Good while the module lives.
    ///
    /// This asks the driver each time: ask once and keep the handle with the module.
    ///
    /// # Errors
    /// [`BackendError::NoEntryPoint`] with the names of the kernels that are there; whatever the
    /// driver says.
    pub fn function(&self, name: &str) -> Result<RawHandle, BackendError> {
        let absent = || BackendError::NoEntryPoint {
            entry: name.to_owned(),
            available: self.names.kernels.clone(),
        };
        let in_code = self.names.in_code(name).ok_or_else(absent)?;
        let in_code = CString::new(in_code).map_err(|_| absent())?;
        self.loaded.function(&in_code).map_err(|failure| match failure.code {
            NOT_FOUND => absent(),
            _ => failure.into(),
        })
    }

    /// A function of the driver's, by its name in the library, such as `cuLaunchKernel` or
    /// `cuMemAlloc_v2`: of the very library that has loaded this module, wherever it was found. For
    /// whoever launches without a crate that has the driver's functions. Good for the life of the
    /// process; to call it, turn it into a pointer of the type that `cuda.h` gives it, with
    /// `extern "system"`.
    ///
    /// None where the library has no function of this name.
    #[must_use]
    pub fn driver_function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        self.loaded.context().driver.function(name)
    }

    /// Unloads it.
    pub(crate) fn release(self) -> Result<(), BackendError> {
        self.loaded.release().map_err(BackendError::from)
    }
}
