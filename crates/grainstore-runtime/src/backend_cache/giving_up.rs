//! Gives up the modules of a device whose driver must not be called for them any more.

use std::cell::Cell;

use super::BackendCache;
use crate::{Backend, Device};

thread_local! {
    /// Whether this thread takes modules out of the cache in order to abandon them.
    static ON: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread may not release modules just now.
pub(super) fn is_on() -> bool {
    ON.try_with(Cell::get).unwrap_or(false)
}

struct Guard;

impl Guard {
    fn new() -> Self {
        let _ = ON.try_with(|on| on.set(true));
        Self
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = ON.try_with(|on| on.set(false));
    }
}

impl<B: Backend> BackendCache<B> {
    /// Takes the device's modules out of the cache and abandons them, the unpinned ones too: not one
    /// is released. A build that ends later, and a release that another thread is about to make,
    /// find the life lost.
    pub(super) fn give_up(&self, device: &Device) {
        device.life().lose();
        let _guard = Guard::new();
        self.cache.evict_device(&device.id()).abandon();
    }
}
