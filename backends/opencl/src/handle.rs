//! Who owns a driver's object, and why it may go from thread to thread.

use std::ffi::c_void;
use std::fmt;
use std::mem;
use std::ptr;
use std::sync::Arc;

use crate::driver::Driver;
use crate::status::Failure;

/// An object of the driver, released once: by [`release`](Self::release), or when it is dropped.
pub(crate) struct Owned {
    raw: *mut c_void,
    driver: Arc<Driver>,
    give_back: fn(&Driver, *mut c_void) -> Result<(), Failure>,
    /// Whether it is among the driver's live handles.
    counted: bool,
}

// SAFETY: OpenCL's objects belong to no thread, and all its calls may be made from several threads
// at once, but for those that set a kernel's arguments. This crate makes none of these, and what it
// hands out for them (`OpenClKernel`) is not `Sync`. The pointer itself is never followed.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Owned {
    /// Takes over one reference to `raw`, which `give_back` will release.
    pub(crate) fn new(
        raw: *mut c_void,
        driver: &Arc<Driver>,
        give_back: fn(&Driver, *mut c_void) -> Result<(), Failure>,
    ) -> Self {
        driver.live.add(1);
        Self { raw, driver: Arc::clone(driver), give_back, counted: true }
    }

    /// The same for one more reference to what the application made and has.
    pub(crate) fn of_application(
        raw: *mut c_void,
        driver: &Arc<Driver>,
        give_back: fn(&Driver, *mut c_void) -> Result<(), Failure>,
    ) -> Self {
        Self { raw, driver: Arc::clone(driver), give_back, counted: false }
    }

    /// The object itself.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }

    /// The driver it belongs to.
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Releases it now, and says whether that worked.
    pub(crate) fn release(mut self) -> Result<(), Failure> {
        let raw = self.take();
        (self.give_back)(&self.driver, raw)
    }

    /// Hands the reference over to the caller.
    pub(crate) fn into_raw(mut self) -> *mut c_void {
        self.take()
    }

    /// From here on it is not this one's any more.
    fn take(&mut self) -> *mut c_void {
        if self.counted {
            self.driver.live.remove(1);
        }
        mem::replace(&mut self.raw, ptr::null_mut())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Null once it was released or handed over.
        if !self.raw.is_null() {
            let raw = self.take();
            // Nobody is left to be told; whoever wants to know calls `release`.
            let _ = (self.give_back)(&self.driver, raw);
        }
    }
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.raw, f)
    }
}

/// A device. Root devices are there for the life of the process and are never released; those of an
/// application's context are kept by [`Context`](crate::context::Context).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceHandle(pub(crate) *mut c_void);

// SAFETY: as for `Owned`: a device belongs to no thread, and the pointer is never followed.
unsafe impl Send for DeviceHandle {}
// SAFETY: as above.
unsafe impl Sync for DeviceHandle {}
