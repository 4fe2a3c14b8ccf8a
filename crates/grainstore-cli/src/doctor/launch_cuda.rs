//! A launch on a CUDA device, through a few of the driver's functions.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use grainstore::DeviceId;
use grainstore_cuda::CudaBackend;
use grainstore_runtime::{Backend, BackendError, Target};
use libloading::Library;

use super::examine::{COUNT, FACTOR, Launch};

/// Where the backend looks as well.
const VARIABLE: &str = "GRAINSTORE_CUDA_LIBRARY";
const DRIVER: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

type Address = u64;
type LaunchKernel = unsafe extern "C" fn(
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
        let driver = Driver::open()?;
        let function = module.function("saxpy")?;
        let push: unsafe extern "C" fn(*mut c_void) -> c_int = driver.get("cuCtxPushCurrent_v2")?;
        let pop: unsafe extern "C" fn(*mut *mut c_void) -> c_int =
            driver.get("cuCtxPopCurrent_v2")?;
        // SAFETY: the module keeps its context alive.
        check("cuCtxPushCurrent", unsafe { push(module.context()) })?;
        let launched = driver.saxpy(function, x, y);
        let mut popped = ptr::null_mut();
        // SAFETY: it was pushed above.
        check("cuCtxPopCurrent", unsafe { pop(&raw mut popped) })?;
        launched
    }
}

/// The driver's library, which the backend has loaded before.
struct Driver(Library);

impl Driver {
    fn open() -> Result<Self, BackendError> {
        let path = std::env::var_os(VARIABLE).unwrap_or_else(|| DRIVER.into());
        // SAFETY: the backend has run this library's start-up code already.
        let library = unsafe { Library::new(path) };
        library.map(Self).map_err(|error| BackendError::failed("loading the driver", error))
    }

    fn get<T: Copy>(&self, name: &'static str) -> Result<T, BackendError> {
        // SAFETY: each caller gives the function the type that the driver's header gives it.
        let function = unsafe { self.0.get::<T>(name) };
        function.map(|function| *function).map_err(|error| BackendError::failed(name, error))
    }

    /// With the context current.
    fn saxpy(
        &self,
        function: *mut c_void,
        x: &[f32; COUNT],
        y: &mut [f32; COUNT],
    ) -> Result<(), BackendError> {
        let launch: LaunchKernel = self.get("cuLaunchKernel")?;
        let synchronize: unsafe extern "C" fn() -> c_int = self.get("cuCtxSynchronize")?;
        let to_host: unsafe extern "C" fn(*mut c_void, Address, usize) -> c_int =
            self.get("cuMemcpyDtoH_v2")?;
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
            check("cuLaunchKernel", code)?;
            check("cuCtxSynchronize", synchronize())?;
            check("cuMemcpyDtoH", to_host(y.as_mut_ptr().cast(), at_y, size_of_val(y)))
        }
    }
}

/// Numbers in the device's memory.
struct Buffer<'d> {
    driver: &'d Driver,
    address: Address,
}

impl<'d> Buffer<'d> {
    fn new(driver: &'d Driver, numbers: &[f32; COUNT]) -> Result<Self, BackendError> {
        let allocate: unsafe extern "C" fn(*mut Address, usize) -> c_int =
            driver.get("cuMemAlloc_v2")?;
        let to_device: unsafe extern "C" fn(Address, *const c_void, usize) -> c_int =
            driver.get("cuMemcpyHtoD_v2")?;
        let (mut address, size) = (0, size_of_val(numbers));
        // SAFETY: a context is current; the copy reads as many bytes as there are.
        unsafe {
            check("cuMemAlloc", allocate(&raw mut address, size))?;
            let buffer = Self { driver, address };
            check("cuMemcpyHtoD", to_device(address, numbers.as_ptr().cast(), size))?;
            Ok(buffer)
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        type Free = unsafe extern "C" fn(Address) -> c_int;
        if let Ok(free) = self.driver.get::<Free>("cuMemFree_v2") {
            // SAFETY: it was allocated in the context that is still current.
            unsafe { free(self.address) };
        }
    }
}

fn check(call: &'static str, code: c_int) -> Result<(), BackendError> {
    if code == 0 { Ok(()) } else { Err(BackendError::failed(call, format!("CUDA error {code}"))) }
}
