//! A kernel as the runtime hands it out, whatever its backend.

use std::any::Any;
use std::fmt;

use grainstore::{DeviceId, Pinned};

use crate::{AnyModule, Loaded};

/// A loaded kernel. While it or a clone of it lives, its module is not released.
#[derive(Clone)]
pub struct Kernel {
    pinned: Pinned<Loaded<AnyModule>>,
}

impl Kernel {
    #[inline]
    pub(super) fn new(pinned: Pinned<Loaded<AnyModule>>) -> Self {
        Self { pinned }
    }

    /// The backend's module, from which the native handle is had: `None` if it is another backend's.
    #[must_use]
    #[inline]
    pub fn module<M: Any>(&self) -> Option<&M> {
        self.pinned.downcast_ref()
    }

    /// The device that it is loaded on.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.pinned.device()
    }

    /// Whether both are the same loaded module, not only the same kernel.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Pinned::ptr_eq(&self.pinned, &other.pinned)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("device", &self.device()).finish_non_exhaustive()
    }
}
