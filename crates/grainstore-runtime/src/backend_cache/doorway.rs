//! The one way to a backend.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::activity::{Activity, Gate, Inside};
use crate::process::Home;
use crate::{Backend, BackendError, Loaded, RuntimeError};

/// The one way to the backend: nobody gets to it but through [`enter`](Self::enter), in its own
/// process and before a shutdown is complete.
pub(super) struct Doorway<B> {
    pub(super) backend: Arc<B>,
    pub(super) name: Arc<str>,
    pub(super) home: Home,
    pub(super) activity: Arc<Activity>,
    /// Something was given up: the backend's own drop must not touch the driver either.
    given_up: AtomicBool,
}

impl<B: Backend> Doorway<B> {
    pub(super) fn new(backend: B) -> Self {
        Self {
            name: Arc::from(backend.name()),
            backend: Arc::new(backend),
            home: Home::here(),
            activity: Arc::default(),
            given_up: AtomicBool::new(false),
        }
    }

    /// Lets a call into the backend, or says why not. In a forked child not even a lock is taken:
    /// a thread that is not there may hold it.
    pub(super) fn enter(
        &self,
        latest: Gate,
        what: impl FnOnce() -> String,
    ) -> Result<Inside, RuntimeError> {
        self.home.check()?;
        self.activity.enter(latest, what).ok_or(RuntimeError::ShutDown)
    }

    pub(super) fn error(&self, kernel: Option<&str>, error: BackendError) -> RuntimeError {
        RuntimeError::backend(&self.name, kernel, error)
    }

    /// Something is abandoned: from now on the backend itself is never dropped.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Releases a module; or forgets it, where its driver must not be called any more.
    pub(super) fn unload(&self, loaded: Loaded<B::Module>) -> Result<(), BackendError> {
        let device = loaded.device();
        let (module, life) = loaded.into_parts();
        if !life.is_lost() {
            let name = || format!("a release on {device}");
            if let Ok(_inside) = self.enter(Gate::Leaving, name) {
                return self.backend.unload(module);
            }
        }
        mem::forget(module);
        Ok(())
    }
}

impl<B> Drop for Doorway<B> {
    fn drop(&mut self) {
        if *self.given_up.get_mut() || !self.home.is_here() {
            // Its drop would call the driver. It stays, as the operating system finds it.
            mem::forget(Arc::clone(&self.backend));
        }
    }
}
