//! What keeps a listener registered.

use std::fmt;

use super::listeners::{Key, Unregister};
use crate::sync::{Arc, Weak};

/// Keeps a listener registered until it is dropped.
///
/// Dropping it waits for nothing, so it may be dropped anywhere, also inside the listener itself. If
/// a notification is calling the listener on another thread just then, that call goes on; a later
/// one does not come.
///
/// It keeps neither the hooks nor anything else alive.
#[must_use = "dropping a registration unregisters its listener: keep it, or call `forget`"]
pub struct Registration {
    places: Vec<(Weak<dyn Unregister>, Key)>,
}

impl Registration {
    pub(super) fn of(list: &Arc<impl Unregister + 'static>, key: Key) -> Self {
        let list = Arc::downgrade(list);
        Self { places: vec![(list, key)] }
    }

    /// Both as one.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        self.places.append(&mut other.places);
        self
    }

    /// Keeps the listener registered for as long as its hooks live.
    pub fn forget(mut self) {
        self.places.clear();
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        for (list, key) in self.places.drain(..) {
            if let Some(list) = list.upgrade() {
                list.remove(key);
            }
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}
