//! Puts a [`Runtime`] together.

use std::sync::Arc;
use std::time::Duration;

use grainstore::Hooks;

use super::ids::Ids;
use super::{Inner, Runtime};
use crate::backend_cache::reserve_owners;
use crate::erased::{AnyBackend, erase};
use crate::{Backend, BackendCache, RuntimeError, Settings, Store, Warning};

/// Collects the backends and settings of a [`Runtime`].
#[derive(Default)]
#[must_use]
pub struct RuntimeBuilder {
    backends: Vec<AnyBackend>,
    settings: Settings,
}

impl RuntimeBuilder {
    /// One more backend. Whether its driver is here is found out when its devices are asked for.
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.backends.push(erase(backend));
        self
    }

    /// One more store, behind the others: the nearest first.
    pub fn store(mut self, store: impl Store) -> Self {
        self.settings = self.settings.store(store);
        self
    }

    /// The greatest number of modules that each backend holds, over all its devices.
    pub fn capacity(mut self, modules: usize) -> Self {
        self.settings = self.settings.capacity(modules);
        self
    }

    /// The hooks by which the layers above hear of a teardown. Without this it has its own.
    pub fn hooks(mut self, hooks: &Hooks) -> Self {
        self.settings = self.settings.hooks(hooks);
        self
    }

    /// How long a teardown or a shutdown waits for pins and builds to end. 30 seconds without it.
    pub fn drain_bound(mut self, bound: Duration) -> Self {
        self.settings = self.settings.drain_bound(bound);
        self
    }

    /// Only builds that took at least this long are put into the stores. Without it all are.
    pub fn persist_over(mut self, compile_time: Duration) -> Self {
        self.settings = self.settings.persist_over(compile_time);
        self
    }

    /// How long a request waits for another process that is compiling the same kernel. 60 seconds
    /// without it.
    pub fn wait_for_others(mut self, bound: Duration) -> Self {
        self.settings = self.settings.wait_for_others(bound);
        self
    }

    /// Who hears of what went wrong without stopping anybody.
    pub fn on_warning(mut self, listener: impl Fn(&Warning<'_>) + Send + Sync + 'static) -> Self {
        self.settings = self.settings.on_warning(listener);
        self
    }

    /// Where builds and teardowns go that a task has asked for: see [`Settings::blocking`]. Without
    /// it, each gets a thread of its own.
    pub fn blocking(
        mut self,
        run: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.settings = self.settings.blocking(run);
        self
    }

    /// The runtime. No driver is touched yet.
    ///
    /// # Errors
    /// [`RuntimeError::Setup`] without a backend, with two of one name, or a capacity of zero.
    pub fn build(self) -> Result<Runtime, RuntimeError> {
        let Self { backends, settings } = self;
        if backends.is_empty() {
            return Err(RuntimeError::setup("the runtime has no backend; add one with `.backend`"));
        }
        let mut names: Vec<_> = backends.iter().map(Backend::name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("the runtime has two backends named `{}`", pair[0]);
            return Err(RuntimeError::setup(message));
        }
        let ids = Ids::new(&settings.hooks)?;
        let hooks = settings.hooks.clone();
        let drain_bound = settings.drain_bound;
        let blocking = settings.blocking.clone();
        let first_owner = reserve_owners(backends.len() as u64);
        let caches = backends
            .into_iter()
            .zip(first_owner..)
            .map(|(backend, owner)| BackendCache::with_owner(backend, settings.clone(), owner))
            .collect::<Result<_, _>>()?;
        let inner = Inner { caches, first_owner, hooks, drain_bound, blocking, ids };
        Ok(Runtime { inner: Arc::new(inner) })
    }
}
