//! The types of a model checker: loom tries interleavings and the orders of memory that the language
//! allows, shuttle interleavings of the whole cache at random.

#[cfg(loom)]
use loom as checker;
#[cfg(shuttle)]
use shuttle as checker;

use std::cell::Cell;
use std::ops::{Add, Deref, DerefMut, Sub};
use std::sync::PoisonError;
use std::time::Duration;

pub(crate) use checker::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};

/// As the native one.
pub(crate) struct Mutex<T>(checker::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(checker::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { guard, mutex: self }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// A guard that knows its mutex, to lock it again after a wait.
pub(crate) struct MutexGuard<'a, T> {
    guard: checker::sync::MutexGuard<'a, T>,
    mutex: &'a Mutex<T>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// As the native one, except that a wait with an end comes to that end at once.
#[derive(Default)]
pub(crate) struct Condvar(checker::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let MutexGuard { guard, mutex } = guard;
        let guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
        MutexGuard { guard, mutex }
    }

    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> MutexGuard<'a, T> {
        let mutex = guard.mutex;
        drop(guard);
        NOW.set(NOW.get() + timeout);
        checker::thread::yield_now();
        mutex.lock()
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Loom checks that every look is ordered with every change.
#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// As the native one.
#[cfg(shuttle)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(shuttle)]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, look: impl FnOnce(*const T) -> R) -> R {
        look(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }
}

/// Loom takes a sequentially consistent access for little more than a releasing or acquiring one,
/// but a fence for what it is; so where the order of such accesses is relied on, it gets a fence.
/// Under shuttle every access is sequentially consistent.
pub(crate) fn agree() {
    if cfg!(loom) {
        fence(std::sync::atomic::Ordering::SeqCst);
    }
}

thread_local! {
    /// A model runs all its threads on one thread of the system, so it has a clock of its own.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A moment of a clock that only waits move, so that a run repeats exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(NOW.get())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Self::now() - *self
    }

    pub(crate) fn checked_add(&self, distance: Duration) -> Option<Self> {
        self.0.checked_add(distance).map(Self)
    }

    pub(crate) fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, distance: Duration) -> Self {
        Self(self.0 + distance)
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

/// As the native one.
pub(crate) fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    checker::thread::Builder::new().name(name.to_owned()).spawn(run).is_ok()
}

/// A variable of each execution.
#[cfg(loom)]
macro_rules! process_wide {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $initial:expr;) => {
        loom::lazy_static! { $(#[$attribute])* static ref $name: $type = $initial; }
    };
}

/// Variables of each thread.
#[cfg(loom)]
macro_rules! per_thread {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $initial:expr;)*) => {
        loom::thread_local! { $($(#[$attribute])* static $name: $type = $initial;)* }
    };
}

/// A variable of each execution.
#[cfg(shuttle)]
macro_rules! process_wide {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $initial:expr;) => {
        shuttle::lazy_static! { $(#[$attribute])* static ref $name: $type = $initial; }
    };
}

/// Variables of each thread.
#[cfg(shuttle)]
macro_rules! per_thread {
    ($($(#[$attribute:meta])* static $name:ident: $type:ty = $initial:expr;)*) => {
        shuttle::thread_local! { $($(#[$attribute])* static $name: $type = $initial;)* }
    };
}

pub(crate) use {per_thread, process_wide};
