//! A device's context, and the calls that are made in it.
//!
//! CUDA has one current context for each thread. Every call here makes its own current and puts back
//! what was there, whatever comes of it: the application's is never disturbed.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::driver::{Driver, RawDevice};
use crate::handle::Handle;
use crate::status::{DESTROYED, Failure, GONE};

/// A context of one device: its primary one, which all libraries of the process share, or the
/// application's own.
pub(crate) struct Context {
    pub(crate) driver: Arc<Driver>,
    raw: Handle,
    device: RawDevice,
    /// Whether a reference to it is ours: to the primary one. The application's is its own business.
    retained: bool,
    /// The modules in it that were not unloaded.
    pub(crate) modules: AtomicUsize,
    /// Whether it was reset, and everything in it is gone. Calls in it hold the lock for reading.
    gone: RwLock<bool>,
}

impl Context {
    /// The device's primary context, made if nobody has it yet.
    pub(crate) fn primary(driver: &Arc<Driver>, device: RawDevice) -> Result<Self, Failure> {
        let mut raw = ptr::null_mut();
        // SAFETY: the device is one of this driver's, and the pointer may be written.
        let code = unsafe { (driver.functions.cuDevicePrimaryCtxRetain)(&raw mut raw, device) };
        driver.check("cuDevicePrimaryCtxRetain", code)?;
        driver.live.add(1);
        Ok(Self::new(driver, raw, device, true))
    }

    /// The application's own.
    ///
    /// # Safety
    /// It is a context of this driver, and lives as long as this or anything loaded into it.
    pub(crate) unsafe fn of_application(
        driver: &Arc<Driver>,
        raw: *mut c_void,
    ) -> Result<Self, Failure> {
        let mut context = Self::new(driver, raw, 0, false);
        let mut device = 0;
        context.inside("cuCtxGetDevice", || {
            // SAFETY: a context is current, and the number may be written.
            unsafe { (driver.functions.cuCtxGetDevice)(&raw mut device) }
        })?;
        context.device = device;
        Ok(context)
    }

    fn new(driver: &Arc<Driver>, raw: *mut c_void, device: RawDevice, retained: bool) -> Self {
        Self {
            driver: Arc::clone(driver),
            raw: Handle(raw),
            device,
            retained,
            modules: AtomicUsize::new(0),
            gone: RwLock::new(false),
        }
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw.0
    }

    pub(crate) fn device(&self) -> RawDevice {
        self.device
    }

    /// Whether no call in it succeeds any more. Waits for no work.
    pub(crate) fn is_lost(&self) -> bool {
        let (mut free, mut total) = (0, 0);
        let asked = self.inside("cuMemGetInfo", || {
            // SAFETY: both numbers may be written.
            unsafe { (self.driver.functions.cuMemGetInfo_v2)(&raw mut free, &raw mut total) }
        });
        asked.is_err_and(|failure| failure.is_lost())
    }

    /// Has the driver drop a lost primary context with all that is in it, ours and others', so that
    /// the next one is new. The handles in it are then released already.
    pub(crate) fn reset(&self) -> Result<(), Failure> {
        let mut gone = self.gone.write().unwrap_or_else(PoisonError::into_inner);
        if *gone || !self.retained {
            return Ok(());
        }
        let functions = &self.driver.functions;
        // SAFETY: the device is one of this driver's. What is in the context is lost.
        let reset = unsafe { (functions.cuDevicePrimaryCtxReset_v2)(self.device) };
        self.driver.check("cuDevicePrimaryCtxReset", reset)?;
        *gone = true;
        self.driver.live.remove(1 + self.modules.swap(0, Ordering::Relaxed));
        // A reset leaves the references as they are.
        // SAFETY: one of them is ours, and from here on it is not.
        let code = unsafe { (functions.cuDevicePrimaryCtxRelease_v2)(self.device) };
        self.driver.check("cuDevicePrimaryCtxRelease", code)
    }

    /// Gives this crate's reference back. It must be the last use of it.
    pub(crate) fn release(mut self) -> Result<(), Failure> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<(), Failure> {
        let gone = self.gone.get_mut().unwrap_or_else(PoisonError::into_inner);
        if *gone || !self.retained {
            return Ok(());
        }
        *gone = true;
        self.driver.live.remove(1);
        // SAFETY: the reference is ours, and from here on it is not.
        let code = unsafe { (self.driver.functions.cuDevicePrimaryCtxRelease_v2)(self.device) };
        if code == GONE { Ok(()) } else { self.driver.check("cuDevicePrimaryCtxRelease", code) }
    }

    /// Whether it was reset; as long as the answer is held, it will not be.
    pub(crate) fn gone(&self) -> RwLockReadGuard<'_, bool> {
        self.gone.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What calls in a context that is gone come to, without being made.
    pub(crate) fn gone_failure(&self, call: &'static str) -> Failure {
        let words = "CUDA_ERROR_CONTEXT_IS_DESTROYED, the device was lost and reset".to_owned();
        Failure { call, code: DESTROYED, words }
    }

    /// Makes a call with this context current, and the thread's own again afterwards.
    pub(crate) fn inside(
        &self,
        call: &'static str,
        make: impl FnOnce() -> i32,
    ) -> Result<(), Failure> {
        let _current = Current::of(self)?;
        self.driver.check(call, make())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Nobody is left to be told; whoever wants to know calls `release`.
        let _ = self.give_back();
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("raw", &self.raw).field("device", &self.device).finish()
    }
}

/// While this lives, a context is the current one of this thread.
struct Current<'d> {
    driver: &'d Driver,
    one_thread: PhantomData<*mut c_void>,
}

impl<'d> Current<'d> {
    fn of(context: &'d Context) -> Result<Self, Failure> {
        let driver = &*context.driver;
        // SAFETY: the context lives.
        let code = unsafe { (driver.functions.cuCtxPushCurrent_v2)(context.raw.0) };
        driver.check("cuCtxPushCurrent", code)?;
        Ok(Self { driver, one_thread: PhantomData })
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = ptr::null_mut();
        // SAFETY: `of` has pushed one, on this thread since this is not `Send`; the pointer may be
        // written. A failure leaves nothing to be done.
        let _ = unsafe { (self.driver.functions.cuCtxPopCurrent_v2)(&raw mut popped) };
    }
}
