//! A context, made here or by the application, and the place of a program in it.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use opencl_sys::CL_CONTEXT_DEVICES;

use crate::driver::{Driver, call, handles, info};
use crate::handle::{DeviceHandle, Owned};
use crate::status::Failure;

/// A context of one device or several.
pub(crate) struct Context {
    owned: Owned,
    /// Keeps the devices alive that the application made: parts of other devices.
    _devices: Vec<Owned>,
}

/// A device in a context of it: where a program lives.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) context: Arc<Context>,
    pub(crate) device: DeviceHandle,
}

impl Context {
    /// A new context of these devices, which are all of one platform.
    pub(crate) fn new(driver: &Arc<Driver>, devices: &[DeviceHandle]) -> Result<Self, Failure> {
        let devices: Vec<_> = devices.iter().map(|device| device.0).collect();
        let mut code = 0;
        // SAFETY: as many devices are given as are announced; no properties and no callback.
        let raw = unsafe {
            call!(
                driver,
                clCreateContext(
                    ptr::null(),
                    devices.len() as u32,
                    devices.as_ptr(),
                    None,
                    ptr::null_mut(),
                    &raw mut code,
                )
            )
        };
        Failure::check("clCreateContext", code)?;
        Ok(Self { owned: Owned::new(raw, driver, Driver::release_context), _devices: Vec::new() })
    }

    /// One more hold on a context of the application's, and its devices in its own order.
    ///
    /// # Safety
    /// `raw` is a live context of this driver's library.
    pub(crate) unsafe fn of_application(
        driver: &Arc<Driver>,
        raw: *mut c_void,
    ) -> Result<(Self, Vec<DeviceHandle>), Failure> {
        // SAFETY: the context lives, by the caller's word.
        let code = unsafe { call!(driver, clRetainContext(raw)) };
        Failure::check("clRetainContext", code)?;
        let owned = Owned::of_application(raw, driver, Driver::release_context);
        let found = info("clGetContextInfo", |size, value, needed| {
            // SAFETY: the context lives, and `value` has room for `size` bytes.
            Ok(unsafe {
                call!(driver, clGetContextInfo(raw, CL_CONTEXT_DEVICES, size, value, needed))
            })
        })?;
        let (mut devices, mut kept) = (Vec::new(), Vec::new());
        for device in handles(&found) {
            // SAFETY: a device of a live context.
            let code = unsafe { call!(driver, clRetainDevice(device)) };
            Failure::check("clRetainDevice", code)?;
            kept.push(Owned::of_application(device, driver, Driver::release_device));
            devices.push(DeviceHandle(device));
        }
        Ok((Self { owned, _devices: kept }, devices))
    }

    /// The library's calls.
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        self.owned.driver()
    }

    /// The native handle.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.owned.raw()
    }

    /// The native handle with one more reference, for the caller to release.
    pub(crate) fn retained(&self) -> Result<*mut c_void, Failure> {
        // SAFETY: the context lives.
        let code = unsafe { call!(self.owned.driver(), clRetainContext(self.raw())) };
        Failure::check("clRetainContext", code).map(|()| self.raw())
    }

    /// Gives this crate's reference back; the driver keeps the context while something uses it.
    pub(crate) fn release(self) -> Result<(), Failure> {
        self.owned.release()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.owned).finish()
    }
}
