//! The driver's handles, and why they may go from thread to thread.

use std::ffi::c_void;

/// A context or a module of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(pub(crate) *mut c_void);

// SAFETY: the driver's objects belong to no thread: a context may be current on any, on several at
// once, and all calls that this crate makes may be made so. The pointer itself is never followed.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}
