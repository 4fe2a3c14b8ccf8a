//! A cache that follows the teardown hooks.

use super::Cache;
use super::builder::Ownership;
use super::core::{Core, Key};
use super::drain::Drain;
use crate::hooks::Level;
use crate::sync::{Arc, Weak};
use crate::{Hooks, Registration, ReleaseError};

/// Registers the cache: it drops what the hooks say is gone, before the owners do if it borrows.
pub(crate) fn listen<K: Key, V: Send + Sync + 'static>(
    hooks: &Hooks,
    cache: &Cache<K, V>,
) -> Registration {
    let borrows = cache.ownership() == Ownership::Borrows;
    let level = if borrows { Level::Memo } else { Level::Owner };
    let core = Arc::downgrade(cache.core());
    let destroyed = {
        let core = core.clone();
        hooks.on_device_destroy_at(level, move |device| {
            with(&core, |core| core.evict_device(*device))
        })
    };
    if !borrows {
        return destroyed;
    }
    destroyed.and(hooks.on_clear_all_at(level, move || with(&core, Core::clear)))
}

/// Runs a sweep on a cache that is still there; its first release error so far is the listener's.
fn with<K: Key, V: Send + Sync + 'static>(
    core: &Weak<Core<K, V>>,
    sweep: impl FnOnce(&Core<K, V>) -> Arc<super::core::drains::DrainState>,
) -> Result<(), ReleaseError> {
    let Some(core) = core.upgrade() else { return Ok(()) };
    let drain = Drain::<K>::new(sweep(&core), core);
    drain.errors().into_iter().next().map_or(Ok(()), Err)
}
