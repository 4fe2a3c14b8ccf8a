//! A module in its context.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::assembler::{Log, Refused};
use crate::context::Context;
use crate::handle::Handle;
use crate::status::{Failure, GONE};

/// A module in its context.
pub(crate) struct Loaded {
    raw: Handle,
    context: Arc<Context>,
    released: bool,
}

impl Context {
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
        let gone = self.gone();
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
        self.driver.live.add(1);
        self.modules.fetch_add(1, Ordering::Relaxed);
        Ok(Loaded { raw: Handle(raw), context: Arc::clone(self), released: false })
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
        let gone = context.gone();
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
        let gone = context.gone();
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
