//! How a cache hears of devices that others destroy, and how it lets its handles be reset.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use grainstore::{DeviceId, Hooks, Registration};

use super::{BackendCache, Inner};
use crate::{Backend, RuntimeError};

/// The registrations of one cache with its hooks.
#[derive(Default)]
pub(super) struct Hearing {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// First the handle goes,
    handles: Option<Registration>,
    /// and last of all listeners the kernels do.
    kernels: Option<Registration>,
    /// How many resets are telling the layers above just now. Meanwhile the kernels do not listen.
    resets: usize,
}

impl Hearing {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<B: Backend> BackendCache<B> {
    /// Starts to listen.
    pub(super) fn listen(&self) {
        let inner: Weak<Inner<B>> = Arc::downgrade(&self.inner);
        let handles = self.hooks().on_device_destroy(move |id: &DeviceId| {
            if let Some(inner) = inner.upgrade()
                && !is_resetting()
            {
                inner.table.hear_of_destruction(id);
            }
            Ok::<_, Infallible>(())
        });
        let kernels = self.cache.listen(self.hooks());
        self.inner.hearing.with(|state| {
            state.handles = Some(handles);
            state.kernels = Some(kernels);
        });
    }

    /// Retires every handle, so that the next [`devices`](Self::devices) looks anew at what is
    /// there, and tells the layers above that each device is gone. The kernels stay: a device whose
    /// target and toolchain are still the same finds its own in memory.
    ///
    /// # Errors
    /// [`RuntimeError::Hook`] when a listener failed; all handles are retired all the same.
    pub fn reset_devices(&self) -> Result<(), RuntimeError> {
        reset(std::slice::from_ref(self), self.hooks())
    }
}

/// Resets the handles of these caches, which share these hooks.
pub(crate) fn reset<B: Backend>(
    caches: &[BackendCache<B>],
    hooks: &Hooks,
) -> Result<(), RuntimeError> {
    for cache in caches {
        cache.inner.door.home.check()?;
    }
    let _deaf: Vec<_> = caches.iter().map(Deaf::new).collect();
    let ids: BTreeSet<_> = caches.iter().flat_map(|cache| cache.inner.table.reset()).collect();
    // Every device, whatever the first one's listeners say.
    ids.iter()
        .map(|id| resetting(|| hooks.notify_device_destroy(id)).map_err(RuntimeError::from))
        .fold(Ok(()), Result::and)
}

thread_local! {
    /// How many resets this thread is telling of. What it says is destroyed meanwhile is not.
    static RESETTING: Cell<usize> = const { Cell::new(0) };
}

fn resetting<T>(notify: impl FnOnce() -> T) -> T {
    let count = |by: isize| {
        let _ = RESETTING.try_with(|count| count.set(count.get().wrapping_add_signed(by)));
    };
    count(1);
    // Nothing unwinds out of a notification.
    let result = notify();
    count(-1);
    result
}

fn is_resetting() -> bool {
    RESETTING.try_with(Cell::get).unwrap_or(0) > 0
}

/// While it lives the kernels do not hear of destroyed devices, since none is.
///
/// A device that somebody really destroys meanwhile still loses its handle, and its kernels go when
/// the next handle is asked for.
struct Deaf<'a, B: Backend>(&'a BackendCache<B>);

impl<'a, B: Backend> Deaf<'a, B> {
    fn new(cache: &'a BackendCache<B>) -> Self {
        let registration = cache.inner.hearing.with(|state| {
            state.resets += 1;
            state.kernels.take()
        });
        drop(registration);
        Self(cache)
    }
}

impl<B: Backend> Drop for Deaf<'_, B> {
    fn drop(&mut self) {
        let cache = self.0;
        let kernels = cache.cache.listen(cache.hooks());
        cache.inner.hearing.with(|state| {
            state.resets -= 1;
            if state.resets == 0 {
                state.kernels = Some(kernels);
            }
        });
    }
}
