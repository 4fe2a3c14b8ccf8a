//! Teardown hooks: the way back up, from a release below to everything that was built upon it.

mod error;
mod listeners;
mod nesting;
mod registration;

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::LazyLock;

pub use error::HookError;
pub(crate) use listeners::Level;
use listeners::Listeners;
use nesting::Entered;
pub use registration::Registration;

use crate::DeviceId;
use crate::sync::Arc;

static GLOBAL: LazyLock<Hooks> = LazyLock::new(Hooks::new);

/// Tells the layers above when what they stand on goes away.
///
/// Kernels are kept at two levels: a backend's cache owns the handles, and layers above keep memos
/// and plans that close over them. The lower layer cannot name the upper ones, so those register
/// here, and the lower one notifies: when a device is destroyed, and when everything is cleared.
///
/// A handle, cheap to clone; clones share their listeners. A listener drops memos. It releases no
/// handle of somebody else's: handles are released by their owner alone. Since the hooks keep their
/// listeners, one that holds its hooks keeps them, and itself, for good: it should hold a
/// [`Weak`](std::sync::Weak) to whatever it tells.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use grainstore::{DeviceId, Family, HookError, Hooks};
///
/// let hooks = Hooks::new();
/// let memo = Arc::new(Mutex::new(vec!["a plan over the kernels"]));
/// let registration = hooks.on_clear_all({
///     let memo = Arc::downgrade(&memo);
///     move || {
///         if let Some(memo) = memo.upgrade() {
///             memo.lock().map_err(|_| "the memo's lock is poisoned")?.clear();
///         }
///         Ok::<(), &str>(())
///     }
/// });
/// hooks.around_clear(|| {
///     // Here the owner releases the kernels; no memo holds one by now.
///     Ok::<(), std::io::Error>(())
/// })?;
/// assert!(memo.lock().unwrap().is_empty());
/// # drop(registration);
/// # Ok::<(), HookError>(())
/// ```
#[derive(Clone, Default)]
pub struct Hooks {
    device_destroy: Arc<Listeners<DeviceId>>,
    clear_all: Arc<Listeners<()>>,
}

impl Hooks {
    /// Hooks of their own, with no listeners.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The hooks of the process, for those who want one for all.
    #[must_use]
    pub fn global() -> &'static Self {
        &GLOBAL
    }

    /// Calls `listener` with each device that is destroyed, until the registration is dropped.
    pub fn on_device_destroy<E>(
        &self,
        listener: impl Fn(&DeviceId) -> Result<(), E> + Send + Sync + 'static,
    ) -> Registration
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.on_device_destroy_at(Level::Memo, listener)
    }

    /// Calls `listener` whenever everything is cleared, until the registration is dropped: once
    /// before [`around_clear`](Self::around_clear) clears and once after.
    pub fn on_clear_all<E>(
        &self,
        listener: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Registration
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.on_clear_all_at(Level::Memo, listener)
    }

    /// [`on_device_destroy`](Self::on_device_destroy) for a listener of this level.
    pub(crate) fn on_device_destroy_at<E>(
        &self,
        level: Level,
        listener: impl Fn(&DeviceId) -> Result<(), E> + Send + Sync + 'static,
    ) -> Registration
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let key = self
            .device_destroy
            .add(level, Box::new(move |device| listener(device).map_err(Into::into)));
        Registration::of(&self.device_destroy, key)
    }

    /// [`on_clear_all`](Self::on_clear_all) for a listener of this level.
    pub(crate) fn on_clear_all_at<E>(
        &self,
        level: Level,
        listener: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Registration
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let key = self.clear_all.add(level, Box::new(move |()| listener().map_err(Into::into)));
        Registration::of(&self.clear_all, key)
    }

    /// Tells every listener that this device is being destroyed: memos first, the caches that own
    /// handles last, and among equals whoever registered first.
    ///
    /// No lock is held meanwhile: a listener may register, unregister and notify. One that is
    /// registered meanwhile waits for the next notification; one that is unregistered meanwhile, and
    /// was not called yet, is not called. A listener that notifies of what it listens for is called
    /// within itself, and must end that.
    ///
    /// # Errors
    /// The first failure of a listener, after all have been called. A listener's panic is a failure.
    pub fn notify_device_destroy(&self, device: &DeviceId) -> Result<(), HookError> {
        self.device_destroy.notify(device)
    }

    /// Tells every listener that everything is being cleared, as
    /// [`notify_device_destroy`](Self::notify_device_destroy) does of a device.
    ///
    /// Who clears something calls [`around_clear`](Self::around_clear) instead.
    ///
    /// # Errors
    /// The first failure of a listener, after all have been called. A listener's panic is a failure.
    pub fn notify_clear_all(&self) -> Result<(), HookError> {
        self.clear_all.notify(&())
    }

    /// Notifies, clears, and notifies again.
    ///
    /// The first notification has the memos let go of what is about to be cleared; the second dooms
    /// what was built upon it between the first and the release. The second always comes, also when
    /// `clear` fails or panics (a panic goes on after it).
    ///
    /// Calls inside `clear`, or inside a listener that it notifies, on the same thread and the same
    /// hooks only clear: the outermost call has notified, and will again.
    ///
    /// # Errors
    /// [`HookError::Clear`] where `clear` failed; otherwise the first failure of a listener, though
    /// everything has been cleared then.
    pub fn around_clear<T, E>(&self, clear: impl FnOnce() -> Result<T, E>) -> Result<T, HookError>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let clear = || clear().map_err(|error| HookError::clear(error.into()));
        let Some(_entered) = Entered::outermost(&self.clear_all) else {
            return clear();
        };
        let before = self.notify_clear_all();
        // Whatever the panic left half done is for its own owner to see: it goes on below.
        let cleared = catch_unwind(AssertUnwindSafe(clear));
        let after = self.notify_clear_all();
        let value = cleared.unwrap_or_else(|panic| resume_unwind(panic))?;
        before.and(after).map(|()| value)
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("device_destroy", &self.device_destroy.len())
            .field("clear_all", &self.clear_all.len())
            .finish()
    }
}
