//! The types that ship: the standard library's.

#[cfg(not(grainstore_tsan))]
pub(crate) use super::locks::{Condvar, Mutex, MutexGuard};
#[cfg(grainstore_tsan)]
pub(crate) use super::spin::{Condvar, Mutex, MutexGuard};
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
pub(crate) use std::time::Instant;

/// A cell whose uses are told apart, for a model to follow.
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// For a look at the value.
    #[inline(always)]
    pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.0.get())
    }

    /// For a change of the value.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}

/// Stands between a sequentially consistent store and load whose order is relied on: there, the
/// order of the accesses is enough.
#[inline(always)]
pub(crate) fn agree() {}

/// Whether the thread could be started.
pub(crate) fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).is_ok()
}

/// A variable of the process.
macro_rules! process_wide {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $initial:expr;) => {
        $(#[$attribute])* static $name: $type = $initial;
    };
}

/// Variables of each thread.
macro_rules! per_thread {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $initial:expr;)*) => {
        thread_local! {
            $($(#[$attribute])* static $name: $type = const { $initial };)*
        }
    };
}

pub(crate) use {per_thread, process_wide};
