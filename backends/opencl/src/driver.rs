//! OpenCL's calls about platforms and devices, each checked and none of them unsafe to use within
//! this crate; those about contexts and programs are in the files of their names.
//!
//! What comes in is a device of this driver or an object that lives; what goes out is owned. With
//! `handle` and `library`, these three are all the unsafe parts, but for the application's word that
//! a context of its own is one.

use std::ffi::c_void;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use grainstore_runtime::BackendError;
use grainstore_runtime::parts::Live;
use opencl_sys::{
    CL_DEVICE_PLATFORM, CL_DEVICE_TYPE_ALL, cl_device_info, cl_platform_id, cl_platform_info,
};

use crate::handle::DeviceHandle;
use crate::library::{self, Functions};
use crate::status::Failure;

/// `CL_DEVICE_NOT_FOUND`: a platform without devices says so by failing.
const NO_DEVICE: i32 = -1;

/// The library's functions.
pub(crate) struct Driver {
    pub(crate) functions: Functions,
    /// What this crate owns of its objects.
    pub(crate) live: Live,
}

/// Calls a function of the library, or fails where that does not have it.
macro_rules! call {
    ($driver:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let function = $driver.functions.$name.ok_or(Failure::absent(stringify!($name)))?;
        function($($argument),*)
    }};
}
pub(crate) use call;

impl Driver {
    /// Loads the library: the one chosen, or else the one that the variables or the system know.
    pub(crate) fn load(chosen: Option<&Path>) -> Result<Arc<Self>, BackendError> {
        let functions = library::load(chosen)?;
        Ok(Arc::new(Self { functions, live: Live::default() }))
    }

    /// All platforms: one for each driver.
    pub(crate) fn platforms(&self) -> Result<Vec<cl_platform_id>, Failure> {
        let mut count = 0;
        // SAFETY: no list is given, so only the number is written.
        let code = unsafe { call!(self, clGetPlatformIDs(0, ptr::null_mut(), &raw mut count)) };
        Failure::check("clGetPlatformIDs", code)?;
        let mut ids = vec![ptr::null_mut(); count as usize];
        if count > 0 {
            // SAFETY: the list has room for as many as it says.
            let code =
                unsafe { call!(self, clGetPlatformIDs(count, ids.as_mut_ptr(), ptr::null_mut())) };
            Failure::check("clGetPlatformIDs", code)?;
        }
        Ok(ids)
    }

    /// All devices of a platform.
    pub(crate) fn devices(&self, platform: cl_platform_id) -> Result<Vec<DeviceHandle>, Failure> {
        let mut count = 0;
        let none = ptr::null_mut();
        // SAFETY: no list is given, so only the number is written.
        let code = unsafe {
            call!(self, clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, none, &raw mut count))
        };
        if code == NO_DEVICE || (code == 0 && count == 0) {
            return Ok(Vec::new());
        }
        Failure::check("clGetDeviceIDs", code)?;
        let mut ids = vec![ptr::null_mut(); count as usize];
        let list = ids.as_mut_ptr();
        // SAFETY: the list has room for as many as it says.
        let code = unsafe {
            call!(self, clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, list, ptr::null_mut()))
        };
        Failure::check("clGetDeviceIDs", code)?;
        Ok(ids.into_iter().map(DeviceHandle).collect())
    }

    /// A text about a platform.
    pub(crate) fn platform_text(
        &self,
        platform: cl_platform_id,
        what: cl_platform_info,
    ) -> Result<String, Failure> {
        info("clGetPlatformInfo", |size, value, needed| {
            // SAFETY: `value` has room for `size` bytes.
            Ok(unsafe { call!(self, clGetPlatformInfo(platform, what, size, value, needed)) })
        })
        .map(|bytes| text(&bytes))
    }

    /// A text about a device.
    pub(crate) fn device_text(
        &self,
        device: DeviceHandle,
        what: cl_device_info,
    ) -> Result<String, Failure> {
        self.device_info(device, what).map(|bytes| text(&bytes))
    }

    /// A number of 32 bits about a device; truth values are such numbers.
    pub(crate) fn device_number(
        &self,
        device: DeviceHandle,
        what: cl_device_info,
    ) -> Result<u32, Failure> {
        let bytes = self.device_info(device, what)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes)))
    }

    /// The platform that a device belongs to.
    pub(crate) fn platform_of(&self, device: DeviceHandle) -> Result<cl_platform_id, Failure> {
        let bytes = self.device_info(device, CL_DEVICE_PLATFORM)?;
        Ok(handles(&bytes).next().unwrap_or(ptr::null_mut()))
    }

    fn device_info(&self, device: DeviceHandle, what: cl_device_info) -> Result<Vec<u8>, Failure> {
        info("clGetDeviceInfo", |size, value, needed| {
            // SAFETY: `value` has room for `size` bytes.
            Ok(unsafe { call!(self, clGetDeviceInfo(device.0, what, size, value, needed)) })
        })
    }

    pub(crate) fn release_device(&self, raw: *mut c_void) -> Result<(), Failure> {
        // SAFETY: called once for each reference, by its owner.
        let code = unsafe { call!(self, clReleaseDevice(raw)) };
        Failure::check("clReleaseDevice", code)
    }

    pub(crate) fn release_context(&self, raw: *mut c_void) -> Result<(), Failure> {
        // SAFETY: called once for each reference, by its owner.
        let code = unsafe { call!(self, clReleaseContext(raw)) };
        Failure::check("clReleaseContext", code)
    }

    pub(crate) fn release_program(&self, raw: *mut c_void) -> Result<(), Failure> {
        // SAFETY: called once for each reference, by its owner.
        let code = unsafe { call!(self, clReleaseProgram(raw)) };
        Failure::check("clReleaseProgram", code)
    }

    pub(crate) fn release_kernel(&self, raw: *mut c_void) -> Result<(), Failure> {
        // SAFETY: called once for each reference, by its owner.
        let code = unsafe { call!(self, clReleaseKernel(raw)) };
        Failure::check("clReleaseKernel", code)
    }
}

/// Asks for a value of unknown size: its size first, and then itself.
pub(crate) fn info(
    call: &'static str,
    ask: impl Fn(usize, *mut c_void, *mut usize) -> Result<i32, Failure>,
) -> Result<Vec<u8>, Failure> {
    let mut size = 0;
    Failure::check(call, ask(0, ptr::null_mut(), &raw mut size)?)?;
    let mut value = vec![0; size];
    if size > 0 {
        Failure::check(call, ask(size, value.as_mut_ptr().cast(), ptr::null_mut())?)?;
    }
    Ok(value)
}

/// The handles in a value that is a list of them.
pub(crate) fn handles(value: &[u8]) -> impl Iterator<Item = *mut c_void> {
    let (handles, _) = value.as_chunks::<{ size_of::<usize>() }>();
    handles.iter().map(|bytes| ptr::with_exposed_provenance_mut(usize::from_ne_bytes(*bytes)))
}

/// A text as it comes from C.
pub(crate) fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned()
}
