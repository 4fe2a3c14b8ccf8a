//! A device's context, and the calls that are made in it.
//!
//! CUDA has one current context for each thread. Every call here makes its own current and puts back
//! what was there, whatever comes of it: the application's is never disturbed.

use std::ffi::{CStr, c_uint, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::driver::{Driver, RawDevice};
use crate::handle::Handle;
use crate::status::{Failure, GONE};

/// `CU_JIT_ERROR_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`.
const LOG_OPTIONS: [c_uint; 2] = [5, 6];
/// `CU_JIT_INPUT_PTX`.
const INPUT_PTX: c_uint = 1;
/// As much as anybody reads of an assembler's complaints.
const LOG_ROOM: usize = 16 * 1024;

/// A context of one device: its primary one, which all libraries of the process share, or the
/// application's own.
pub(crate) struct Context {
    driver: Arc<Driver>,
    raw: Handle,
    device: RawDevice,
    /// Whether a reference to it is ours: to the primary one. The application's is its own business.
    retained: bool,
    /// The modules in it that were not unloaded.
    modules: AtomicUsize,
    /// Whether it was reset, and everything in it is gone. Calls in it hold the lock for reading.
    gone: RwLock<bool>,
}

/// A module in its context.
pub(crate) struct Loaded {
    raw: Handle,
    context: Arc<Context>,
    released: bool,
}

/// A call that failed, with what the driver's assembler said about it.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    pub(crate) log: String,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, log: String::new() }
    }
}

impl Context {
    /// The device's primary context, made if nobody has it yet.
    pub(crate) fn primary(driver: &Arc<Driver>, device: RawDevice) -> Result<Self, Failure> {
        let mut raw = ptr::null_mut();
        // SAFETY: the device is one of this driver's, and the pointer may be written.
        let code = unsafe { (driver.functions.cuDevicePrimaryCtxRetain)(&raw mut raw, device) };
        driver.check("cuDevicePrimaryCtxRetain", code)?;
        driver.live.add();
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

    /// Loads machine code, or PTX that ends in a NUL. The bytes must be whole: the driver reads as
    /// far as they say.
    pub(crate) fn load(self: &Arc<Self>, image: &[u8]) -> Result<Loaded, Refused> {
        let words;
        let start: *const c_void = if image.as_ptr().cast::<u64>().is_aligned() {
            image.as_ptr().cast()
        } else {
            words = aligned(image);
            words.as_ptr().cast()
        };
        let mut raw = ptr::null_mut();
        let mut log = Log::new();
        let gone = self.gone.read().unwrap_or_else(PoisonError::into_inner);
        if *gone {
            return Err(Refused::from(self.gone_failure("cuModuleLoadDataEx")));
        }
        let result = self.inside("cuModuleLoadDataEx", || {
            let (count, options, values) = log.options();
            // SAFETY: the image is whole, by this function's contract; both lists are as long as it
            // says, and the log's buffer lives.
            unsafe {
                (self.driver.functions.cuModuleLoadDataEx)(
                    &raw mut raw,
                    start,
                    count,
                    options,
                    values,
                )
            }
        });
        result.map_err(|failure| Refused { failure, log: log.text() })?;
        self.driver.live.add();
        self.modules.fetch_add(1, Ordering::Relaxed);
        Ok(Loaded { raw: Handle(raw), context: Arc::clone(self), released: false })
    }

    /// Has the driver make machine code for this device of PTX that ends in a NUL.
    pub(crate) fn assemble(&self, ptx: &CStr) -> Result<Vec<u8>, Refused> {
        let functions = &self.driver.functions;
        let mut log = Log::new();
        let mut state = ptr::null_mut();
        let created = self.inside("cuLinkCreate", || {
            let (count, options, values) = log.options();
            // SAFETY: as for `load`. The log's buffer lives as long as the state.
            unsafe { (functions.cuLinkCreate_v2)(count, options, values, &raw mut state) }
        });
        created.map_err(|failure| Refused { failure, log: log.text() })?;
        let assembled = self.assemble_with(state, ptx);
        // SAFETY: the state was made above and nothing uses it any more: the code was copied.
        let _ = self.inside("cuLinkDestroy", || unsafe { (functions.cuLinkDestroy)(state) });
        assembled.map_err(|failure| Refused { failure, log: log.text() })
    }

    fn assemble_with(&self, state: *mut c_void, ptx: &CStr) -> Result<Vec<u8>, Failure> {
        let functions = &self.driver.functions;
        let bytes = ptx.to_bytes_with_nul();
        self.inside("cuLinkAddData", || {
            // SAFETY: the state lives; there are as many bytes as it says, which are only read.
            unsafe {
                (functions.cuLinkAddData_v2)(
                    state,
                    INPUT_PTX,
                    bytes.as_ptr().cast_mut().cast(),
                    bytes.len(),
                    c"kernel.ptx".as_ptr(),
                    0,
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            }
        })?;
        let (mut code, mut length) = (ptr::null_mut(), 0);
        self.inside("cuLinkComplete", || {
            // SAFETY: the state lives, and both may be written.
            unsafe { (functions.cuLinkComplete)(state, &raw mut code, &raw mut length) }
        })?;
        if code.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the driver says that there are as many bytes, which live as long as the state.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), length) }.to_vec())
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

    /// Makes a call with this context current, and the thread's own again afterwards.
    fn inside(&self, call: &'static str, make: impl FnOnce() -> i32) -> Result<(), Failure> {
        let _current = Current::of(self)?;
        self.driver.check(call, make())
    }

    fn gone_failure(&self, call: &'static str) -> Failure {
        let words = "CUDA_ERROR_CONTEXT_IS_DESTROYED, the device was lost and reset".to_owned();
        Failure { call, code: 709, words }
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

impl Loaded {
    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw.0
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The function of this name in the code.
    pub(crate) fn function(&self, name: &CStr) -> Result<*mut c_void, Failure> {
        let context = &self.context;
        let gone = context.gone.read().unwrap_or_else(PoisonError::into_inner);
        if *gone {
            return Err(context.gone_failure("cuModuleGetFunction"));
        }
        let mut function = ptr::null_mut();
        context.inside("cuModuleGetFunction", || {
            // SAFETY: the module lives, and the name ends in a NUL.
            unsafe {
                (context.driver.functions.cuModuleGetFunction)(
                    &raw mut function,
                    self.raw.0,
                    name.as_ptr(),
                )
            }
        })?;
        Ok(function)
    }

    /// Unloads it, and says whether that worked.
    pub(crate) fn release(mut self) -> Result<(), Failure> {
        self.unload()
    }

    fn unload(&mut self) -> Result<(), Failure> {
        let context = &self.context;
        let gone = context.gone.read().unwrap_or_else(PoisonError::into_inner);
        if self.released || *gone {
            return Ok(());
        }
        self.released = true;
        context.driver.live.remove(1);
        context.modules.fetch_sub(1, Ordering::Relaxed);
        let unload = context.driver.functions.cuModuleUnload;
        // SAFETY: the module lives, and from here on it does not.
        let result = context.inside("cuModuleUnload", || unsafe { unload(self.raw.0) });
        result.or_else(|failure| if failure.code == GONE { Ok(()) } else { Err(failure) })
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.unload();
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("raw", &self.raw).field("context", &self.context).finish()
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

/// A copy at an address that a whole word may have: code in a store's buffer may begin anywhere, and
/// the driver looks into its tables where they are.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}

/// Where the driver's assembler writes what is wrong.
struct Log {
    room: Vec<u8>,
    options: [c_uint; 2],
    values: [*mut c_void; 2],
}

impl Log {
    fn new() -> Self {
        Self { room: vec![0; LOG_ROOM], options: LOG_OPTIONS, values: [ptr::null_mut(); 2] }
    }

    fn options(&mut self) -> (c_uint, *mut c_uint, *mut *mut c_void) {
        // The second is a number in the place of a pointer.
        self.values = [self.room.as_mut_ptr().cast(), ptr::without_provenance_mut(LOG_ROOM)];
        (2, self.options.as_mut_ptr(), self.values.as_mut_ptr())
    }

    fn text(&self) -> String {
        let end = self.room.iter().position(|byte| *byte == 0).unwrap_or(LOG_ROOM);
        String::from_utf8_lossy(&self.room[..end]).trim().to_owned()
    }
}
