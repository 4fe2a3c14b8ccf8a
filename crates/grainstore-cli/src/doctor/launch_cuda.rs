//! A launch on a CUDA device, through a few functions of the driver that has loaded the module.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem;
use std::ptr::{self, NonNull};

use grainstore::DeviceId;
use grainstore_cuda::{CudaBackend, CudaModule};
use grainstore_runtime::{Backend, BackendError, Target};

use super::examine::{COUNT, FACTOR, Launch};

type Address = u64;
type LaunchKernel = unsafe extern "system" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;
type Push = unsafe extern "system" fn(*mut c_void) -> c_int;
type Pop = unsafe extern "system" fn(*mut *mut c_void) -> c_int;
type Synchronize = unsafe extern "system" fn() -> c_int;
type Allocate = unsafe extern "system" fn(*mut Address, usize) -> c_int;
type Free = unsafe extern "system" fn(Address) -> c_int;
type ToDevice = unsafe extern "system" fn(Address, *const c_void, usize) -> c_int;
type ToHost = unsafe extern "system" fn(*mut c_void, Address, usize) -> c_int;
type ErrorName = unsafe extern "system" fn(c_int, *mut *const c_char) -> c_int;

impl Launch for CudaBackend {
    const SOURCE: &'static str = "\
extern \"C\" __global__ void saxpy(unsigned n, float a, const float *x, float *y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
";

    fn elsewhere(&self) -> Option<Target> {
        // One that every NVRTC of the last years knows.
        Some(Target::new("sm_80"))
    }

    fn launch(
        &self,
        _: &DeviceId,
        module: &<Self as Backend>::Module,
        x: &[f32; COUNT],
        y: &mut [f32; COUNT],
    ) -> Result<(), BackendError> {
        let driver = Driver(module);
        let function = module.function("saxpy")?;
        // SAFETY: both functions have these types.
        let (push, pop): (Push, Pop) =
            unsafe { (driver.get(c"cuCtxPushCurrent_v2")?, driver.get(c"cuCtxPopCurrent_v2")?) };
        // SAFETY: the module keeps its context alive.
        driver.check("cuCtxPushCurrent", unsafe { push(module.context()) })?;
        let launched = driver.saxpy(function, x, y);
        let mut popped = ptr::null_mut();
        // SAFETY: it was pushed above.
        driver.check("cuCtxPopCurrent", unsafe { pop(&raw mut popped) })?;
        launched
    }
}

/// The driver that has loaded this module.
struct Driver<'m>(&'m CudaModule);

impl Driver<'_> {
    /// # Safety
    /// `F` is the type of a pointer to the function of this name, by the driver's header.
    unsafe fn get<F: Copy>(&self, name: &CStr) -> Result<F, BackendError> {
        const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
        let address = self.0.driver_function(name).ok_or_else(|| {
            BackendError::failed(name.to_string_lossy(), "the driver has no such function")
        })?;
        // SAFETY: both are pointers, and the caller says what this one leads to.
        Ok(unsafe { mem::transmute_copy(&address) })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), BackendError> {
        if code == 0 {
            return Ok(());
        }
        let mut name = ptr::null();
        // SAFETY: the function has this type; any code may be asked about, and the name is one of the
        // driver's constant texts.
        let name = unsafe {
            let ask: ErrorName = self.get(c"cuGetErrorName")?;
            let known = ask(code, &raw mut name) == 0 && !name.is_null();
            known.then(|| CStr::from_ptr(name).to_string_lossy())
        };
        let name = name.unwrap_or("an error that this driver has no name for".into());
        Err(BackendError::failed(call, format!("{name} ({code})")))
    }

    /// With the context current.
    fn saxpy(
        &self,
        function: *mut c_void,
        x: &[f32; COUNT],
        y: &mut [f32; COUNT],
    ) -> Result<(), BackendError> {
        // SAFETY: the functions have these types.
        let (launch, synchronize, to_host): (LaunchKernel, Synchronize, ToHost) = unsafe {
            (
                self.get(c"cuLaunchKernel")?,
                self.get(c"cuCtxSynchronize")?,
                self.get(c"cuMemcpyDtoH_v2")?,
            )
        };
        let (on_x, on_y) = (Buffer::new(self, x)?, Buffer::new(self, y)?);
        let (mut n, mut a) = (COUNT as c_uint, FACTOR);
        let (mut at_x, mut at_y) = (on_x.address, on_y.address);
        let mut arguments: [*mut c_void; 4] = [
            (&raw mut n).cast(),
            (&raw mut a).cast(),
            (&raw mut at_x).cast(),
            (&raw mut at_y).cast(),
        ];
        let (block, none) = (128, ptr::null_mut());
        let grid = n.div_ceil(block);
        // SAFETY: a context is current; the arguments are those of `SOURCE`, and both buffers hold n
        // numbers; the copy ends before the call does.
        unsafe {
            let list = arguments.as_mut_ptr();
            let code = launch(function, grid, 1, 1, block, 1, 1, 0, none, list, ptr::null_mut());
            self.check("cuLaunchKernel", code)?;
            self.check("cuCtxSynchronize", synchronize())?;
            self.check("cuMemcpyDtoH", to_host(y.as_mut_ptr().cast(), at_y, size_of_val(y)))
        }
    }
}

/// Numbers in the device's memory.
struct Buffer<'d> {
    driver: &'d Driver<'d>,
    address: Address,
}

impl<'d> Buffer<'d> {
    fn new(driver: &'d Driver<'_>, numbers: &[f32; COUNT]) -> Result<Self, BackendError> {
        let (mut address, size) = (0, size_of_val(numbers));
        // SAFETY: the functions have these types; a context is current; the copy reads as many bytes
        // as there are.
        unsafe {
            let allocate: Allocate = driver.get(c"cuMemAlloc_v2")?;
            let to_device: ToDevice = driver.get(c"cuMemcpyHtoD_v2")?;
            driver.check("cuMemAlloc", allocate(&raw mut address, size))?;
            let buffer = Self { driver, address };
            driver.check("cuMemcpyHtoD", to_device(address, numbers.as_ptr().cast(), size))?;
            Ok(buffer)
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: the function has this type; it was allocated in the context that is still current.
        unsafe {
            if let Ok(free) = self.driver.get::<Free>(c"cuMemFree_v2") {
                free(self.address);
            }
        }
    }
}
