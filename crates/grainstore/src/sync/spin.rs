//! Locks for ThreadSanitizer, which sees only what is built for it: the standard library is not.
//! They wait by spinning, so nothing else should use them.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// As the standard one.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, and there is one at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        while self.locked.swap(true, Ordering::Acquire) {
            yield_now();
        }
        MutexGuard { mutex: self }
    }
}

/// As the standard one.
pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard has the lock.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard has the lock.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.locked.store(false, Ordering::Release);
    }
}

/// As the standard one.
#[derive(Debug, Default)]
pub(crate) struct Condvar {
    notified: AtomicU64,
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self { notified: AtomicU64::new(0) }
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.wait_until(guard, || false)
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> MutexGuard<'a, T> {
        let start = Instant::now();
        self.wait_until(guard, || start.elapsed() >= timeout)
    }

    fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        over: impl Fn() -> bool,
    ) -> MutexGuard<'a, T> {
        let seen = self.notified.load(Ordering::Relaxed);
        let mutex = guard.mutex;
        drop(guard);
        while self.notified.load(Ordering::Relaxed) == seen && !over() {
            yield_now();
        }
        mutex.lock()
    }

    pub(crate) fn notify_all(&self) {
        self.notified.fetch_add(1, Ordering::Relaxed);
    }
}
