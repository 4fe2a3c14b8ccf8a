//! The types that ship: the standard library's.

use std::sync::PoisonError;
use std::time::Duration;

pub(crate) use std::sync::MutexGuard;
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
pub(crate) use std::time::Instant;

/// A mutex that knows no poison: what it guards is whole between any two statements that can panic.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> MutexGuard<'a, T> {
        self.0.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

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
