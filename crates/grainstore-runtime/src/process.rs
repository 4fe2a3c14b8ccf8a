//! The process that a driver belongs to: a forked child must leave its parent's alone.

use crate::RuntimeError;

/// The process in which the runtime was made.
///
/// A driver's handles do not survive `fork`: threads that the driver started are missing in the
/// child, and its device memory is the parent's. Asking costs a system call, so it is asked where a
/// driver is about to be touched, never on a hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home(u32);

impl Home {
    pub(crate) fn here() -> Self {
        Self(std::process::id())
    }

    pub(crate) fn is_here(self) -> bool {
        self.0 == std::process::id()
    }

    pub(crate) fn check(self) -> Result<(), RuntimeError> {
        if self.is_here() { Ok(()) } else { Err(RuntimeError::Forked { parent: self.0 }) }
    }
}
