//! A module in the cache, and the life of the device that it belongs to.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grainstore::DeviceId;

/// One life of a device, from its first use to its destruction.
///
/// Handles may change within it (a reset of the handles); modules and the context do not.
#[derive(Debug)]
pub(crate) struct Life {
    device: DeviceId,
    lost: AtomicBool,
}

impl Life {
    pub(crate) fn new(device: DeviceId) -> Self {
        Self { device, lost: AtomicBool::new(false) }
    }

    /// The driver's handles are gone, or given up: from now on its modules are forgotten, not
    /// released.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

/// A module as its cache holds it. Dereferences to the module.
pub struct Loaded<M> {
    module: M,
    life: Arc<Life>,
}

impl<M> Loaded<M> {
    pub(crate) fn new(module: M, life: Arc<Life>) -> Self {
        Self { module, life }
    }

    pub(crate) fn into_parts(self) -> (M, Arc<Life>) {
        (self.module, self.life)
    }

    #[inline]
    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// The device that it is loaded on.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.life.device
    }
}

impl<M> Deref for Loaded<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.module
    }
}

impl<M: fmt::Debug> fmt::Debug for Loaded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("device", &self.life.device)
            .field("module", &self.module)
            .finish()
    }
}
