//! Memory and launches, as an application makes them: a few of the driver's functions, looked up in
//! whatever library the test names.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use grainstore_cuda::CudaModule;
use libloading::Library;

pub(crate) struct Driver {
    library: Library,
}

type Address = u64;
type Check = Result<(), String>;

impl Driver {
    pub(crate) fn open(path: &Path) -> Self {
        // SAFETY: it is the driver's library, or the one that the tests make.
        Self { library: unsafe { Library::new(path) }.unwrap() }
    }

    pub(crate) fn get<T: Copy>(&self, name: &str) -> T {
        let name = CString::new(name).unwrap();
        // SAFETY: the callers give each function the type that it has.
        unsafe { *self.library.get::<T>(name.as_c_str()).unwrap() }
    }

    /// Runs a kernel that takes two buffers of numbers, of which it writes the second, an item each.
    pub(crate) fn launch(
        &self,
        module: &CudaModule,
        function: *mut c_void,
        numbers: &[u32],
    ) -> Result<Vec<u32>, String> {
        let push: unsafe extern "C" fn(*mut c_void) -> c_int = self.get("cuCtxPushCurrent_v2");
        let pop: unsafe extern "C" fn(*mut *mut c_void) -> c_int = self.get("cuCtxPopCurrent_v2");
        // SAFETY: the module keeps its context alive.
        check("cuCtxPushCurrent", unsafe { push(module.context()) })?;
        let result = self.launch_here(function, numbers);
        let mut popped = ptr::null_mut();
        // SAFETY: it was pushed above.
        check("cuCtxPopCurrent", unsafe { pop(&raw mut popped) })?;
        result
    }

    fn launch_here(&self, function: *mut c_void, numbers: &[u32]) -> Result<Vec<u32>, String> {
        type Launch = unsafe extern "C" fn(
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
        let to_device: unsafe extern "C" fn(Address, *const c_void, usize) -> c_int =
            self.get("cuMemcpyHtoD_v2");
        let to_host: unsafe extern "C" fn(*mut c_void, Address, usize) -> c_int =
            self.get("cuMemcpyDtoH_v2");
        let launch: Launch = self.get("cuLaunchKernel");
        let synchronize: unsafe extern "C" fn() -> c_int = self.get("cuCtxSynchronize");

        let size = size_of_val(numbers);
        let input = Buffer::new(self, size)?;
        let output = Buffer::new(self, size)?;
        let mut results = vec![0_u32; numbers.len()];
        let (mut from, mut to) = (input.address, output.address);
        let mut arguments = [(&raw mut from).cast::<c_void>(), (&raw mut to).cast::<c_void>()];
        let count = numbers.len() as c_uint;
        // SAFETY: a context is current; the buffers are as large as the lists; the arguments are the
        // kernel's, whose threads are as many as there are numbers.
        unsafe {
            check("cuMemcpyHtoD", to_device(from, numbers.as_ptr().cast(), size))?;
            let (list, none) = (arguments.as_mut_ptr(), ptr::null_mut());
            let code = launch(function, count, 1, 1, 1, 1, 1, 0, none, list, ptr::null_mut());
            check("cuLaunchKernel", code)?;
            check("cuCtxSynchronize", synchronize())?;
            check("cuMemcpyDtoH", to_host(results.as_mut_ptr().cast(), to, size))?;
        }
        Ok(results)
    }
}

struct Buffer<'d> {
    driver: &'d Driver,
    address: Address,
}

impl<'d> Buffer<'d> {
    fn new(driver: &'d Driver, size: usize) -> Result<Self, String> {
        let allocate: unsafe extern "C" fn(*mut Address, usize) -> c_int =
            driver.get("cuMemAlloc_v2");
        let mut address = 0;
        // SAFETY: a context is current, and the address may be written.
        check("cuMemAlloc", unsafe { allocate(&raw mut address, size) })?;
        Ok(Self { driver, address })
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let free: unsafe extern "C" fn(Address) -> c_int = self.driver.get("cuMemFree_v2");
        // SAFETY: it was allocated in the context that is still current.
        unsafe { free(self.address) };
    }
}

fn check(call: &str, code: c_int) -> Check {
    if code == 0 { Ok(()) } else { Err(format!("{call}: {code}")) }
}
