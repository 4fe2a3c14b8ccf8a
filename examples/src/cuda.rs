//! Launches on a CUDA device: memory, parameters, the context's default stream.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::mem;
use std::ptr::{self, NonNull};

use grainstore_cuda::{CudaModule, RawHandle};

use crate::CaseError;
use crate::gpu::{Gpu, Plain};

/// A module on its device. All that is asked goes through the default stream of the module's context,
/// so each launch sees what the ones before it wrote.
#[derive(Debug)]
pub struct CudaSession<'a> {
    driver: Driver<'a>,
}

impl<'a> CudaSession<'a> {
    /// A session with this module.
    ///
    /// # Errors
    /// Where the driver lacks a function that a launch needs.
    pub fn new(module: &'a CudaModule) -> Result<Self, CaseError> {
        Ok(Self { driver: Driver::of(module)? })
    }
}

/// `CUresult` and `CUdeviceptr`.
type Status = i32;
type Address = u64;

type Launch = unsafe extern "system" fn(
    RawHandle,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    RawHandle,
    *mut *mut c_void,
    *mut *mut c_void,
) -> Status;

/// What a launch needs of the driver that has loaded the module. By NVIDIA's `cuda.h`; the names with
/// a version are those that its macros stand for.
#[derive(Clone, Copy, Debug)]
struct Driver<'a> {
    module: &'a CudaModule,
    error_name: unsafe extern "system" fn(Status, *mut *const c_char) -> Status,
    push: unsafe extern "system" fn(RawHandle) -> Status,
    pop: unsafe extern "system" fn(*mut RawHandle) -> Status,
    allocate: unsafe extern "system" fn(*mut Address, usize) -> Status,
    free: unsafe extern "system" fn(Address) -> Status,
    to_device: unsafe extern "system" fn(Address, *const c_void, usize) -> Status,
    to_host: unsafe extern "system" fn(*mut c_void, Address, usize) -> Status,
    launch: Launch,
}

impl<'a> Driver<'a> {
    fn of(module: &'a CudaModule) -> Result<Self, CaseError> {
        // SAFETY: Each field has the type that `cuda.h` gives the function.
        unsafe {
            Ok(Self {
                module,
                error_name: function(module, c"cuGetErrorName")?,
                push: function(module, c"cuCtxPushCurrent_v2")?,
                pop: function(module, c"cuCtxPopCurrent_v2")?,
                allocate: function(module, c"cuMemAlloc_v2")?,
                free: function(module, c"cuMemFree_v2")?,
                to_device: function(module, c"cuMemcpyHtoD_v2")?,
                to_host: function(module, c"cuMemcpyDtoH_v2")?,
                launch: function(module, c"cuLaunchKernel")?,
            })
        }
    }

    /// Makes a call with the module's context current, and the thread's own again afterwards.
    fn inside(&self, call: &'static str, make: impl FnOnce() -> Status) -> Result<(), CaseError> {
        // SAFETY: The context lives while the module does.
        self.check("cuCtxPushCurrent", unsafe { (self.push)(self.module.context()) })?;
        let made = self.check(call, make());
        let mut popped = ptr::null_mut();
        // SAFETY: It was pushed above, and the pointer may be written.
        let put_back = self.check("cuCtxPopCurrent", unsafe { (self.pop)(&raw mut popped) });
        made.and(put_back)
    }

    fn check(&self, call: &'static str, code: Status) -> Result<(), CaseError> {
        if code == 0 {
            return Ok(());
        }
        let mut name = ptr::null();
        // SAFETY: Any code may be asked about, and the pointer may be written.
        let known = unsafe { (self.error_name)(code, &raw mut name) } == 0 && !name.is_null();
        let message = if known {
            // SAFETY: It is one of the driver's constant texts.
            let name = unsafe { CStr::from_ptr(name) };
            format!("{} ({code})", name.to_string_lossy())
        } else {
            format!("an error that this driver has no name for ({code})")
        };
        Err(CaseError::Driver { call, message })
    }
}

/// The driver's function of this name.
///
/// # Safety
/// `F` is the type of a pointer to it.
unsafe fn function<F: Copy>(module: &CudaModule, name: &'static CStr) -> Result<F, CaseError> {
    const { assert!(size_of::<F>() == size_of::<NonNull<c_void>>()) };
    let address = module.driver_function(name).ok_or_else(|| CaseError::Driver {
        call: "a session",
        message: format!("the driver has no `{}`", name.to_string_lossy()),
    })?;
    // SAFETY: Both are pointers, and the caller says that this one leads to such a function.
    Ok(unsafe { mem::transmute_copy(&address) })
}

/// A part of the device's memory.
#[derive(Debug)]
pub(crate) struct Memory<'a> {
    driver: Driver<'a>,
    address: Address,
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        let Driver { free, .. } = self.driver;
        // What the launches before it come to is told to whoever reads their results.
        // SAFETY: It was allocated in this context, and nobody has its address any more.
        let _ = self.driver.inside("cuMemFree", || unsafe { free(self.address) });
    }
}

impl<'a> Gpu for CudaSession<'a> {
    type Memory = Memory<'a>;

    fn create(&self, content: &[u8]) -> Result<Memory<'a>, CaseError> {
        let Driver { allocate, to_device, .. } = self.driver;
        let mut address = 0;
        self.driver.inside("cuMemAlloc", || {
            // SAFETY: The address may be written.
            unsafe { allocate(&raw mut address, content.len()) }
        })?;
        let memory = Memory { driver: self.driver, address };
        self.driver.inside("cuMemcpyHtoD", || {
            // SAFETY: The memory is as long; the driver has read the bytes when it returns.
            unsafe { to_device(address, content.as_ptr().cast(), content.len()) }
        })?;
        Ok(memory)
    }

    fn read(&self, memory: &Memory<'a>, content: &mut [u8]) -> Result<(), CaseError> {
        let Driver { to_host, .. } = self.driver;
        // A launch that went wrong is told here as well: this is the first call that waits for it.
        self.driver.inside("cuMemcpyDtoH", || {
            // SAFETY: The memory is as long, by the trait's word, and the copy ends with the call.
            unsafe { to_host(content.as_mut_ptr().cast(), memory.address, content.len()) }
        })
    }

    unsafe fn enqueue(
        &self,
        function: &str,
        groups: [usize; 3],
        local: [usize; 3],
        arguments: &[Plain<'_, Memory<'a>>],
    ) -> Result<(), CaseError> {
        let function = self.driver.module.function(function)?;
        let mut parameters: Vec<*mut c_void> = arguments
            .iter()
            .map(|argument| match argument {
                Plain::Number(bytes) => bytes.as_ptr().cast_mut().cast(),
                Plain::Memory(memory) => (&raw const memory.address).cast_mut().cast(),
            })
            .collect();
        let [grid_x, grid_y, grid_z] = groups.map(|count| count as c_uint);
        let [block_x, block_y, block_z] = local.map(|count| count as c_uint);
        let (dynamic, stream, extra) = (0, ptr::null_mut(), ptr::null_mut());
        let list = parameters.as_mut_ptr();
        let Driver { launch, .. } = self.driver;
        self.driver.inside("cuLaunchKernel", || {
            // SAFETY: The module lives. The caller promises that the source declares parameters of
            // these kinds; the driver copies them before it returns, and writes none.
            unsafe {
                launch(
                    function, grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic, stream,
                    list, extra,
                )
            }
        })
    }
}
