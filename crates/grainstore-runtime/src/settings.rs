//! How kernels are kept: what a [`BackendCache`](crate::BackendCache) and a
//! [`Runtime`](crate::Runtime) are configured by.

use std::sync::Arc;
use std::time::Duration;

use grainstore::Hooks;

use crate::blocking::Blocking;
use crate::stores::Shelf;
use crate::warning::Warnings;
use crate::{Store, Warning};

/// How kernels are kept. The default: unbounded in memory, no store, hooks of its own.
#[derive(Clone)]
#[must_use]
pub struct Settings {
    pub(crate) shelves: Vec<Arc<Shelf>>,
    pub(crate) capacity: Option<usize>,
    pub(crate) hooks: Hooks,
    pub(crate) drain_bound: Duration,
    pub(crate) persist_over: Duration,
    pub(crate) wait_for_others: Duration,
    pub(crate) warnings: Warnings,
    pub(crate) blocking: Blocking,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            shelves: Vec::new(),
            capacity: None,
            hooks: Hooks::new(),
            drain_bound: Duration::from_secs(30),
            persist_over: Duration::ZERO,
            wait_for_others: Duration::from_secs(60),
            warnings: Warnings::default(),
            blocking: Blocking::default(),
        }
    }
}

impl Settings {
    /// The default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more store, behind the others: the nearest first.
    pub fn store(mut self, store: impl Store) -> Self {
        self.shelves.push(Arc::new(Shelf::new(Box::new(store))));
        self
    }

    /// The greatest number of modules that each backend holds, over all its devices: loaded, being
    /// built, or not yet released. Without it there is no bound.
    pub fn capacity(mut self, modules: usize) -> Self {
        self.capacity = Some(modules);
        self
    }

    /// The hooks by which the layers above hear of a teardown.
    pub fn hooks(mut self, hooks: &Hooks) -> Self {
        self.hooks = hooks.clone();
        self
    }

    /// How long a teardown or a shutdown waits for pins and builds to end. 30 seconds without it.
    pub fn drain_bound(mut self, bound: Duration) -> Self {
        self.drain_bound = bound;
        self
    }

    /// Only builds that took at least this long are put into the stores. Zero without it: all are.
    pub fn persist_over(mut self, compile_time: Duration) -> Self {
        self.persist_over = compile_time;
        self
    }

    /// How long a request waits for another process that is compiling the same kernel, before it
    /// compiles for itself. 60 seconds without it; zero waits for nobody.
    pub fn wait_for_others(mut self, bound: Duration) -> Self {
        self.wait_for_others = bound;
        self
    }

    /// Who hears of what went wrong without stopping anybody. Called on the thread that met it,
    /// under no lock, possibly inside a build.
    pub fn on_warning(mut self, listener: impl Fn(&Warning<'_>) + Send + Sync + 'static) -> Self {
        self.warnings = Warnings::to(listener);
        self
    }

    /// Where builds and teardowns go that a task has asked for: they block, and a task must not.
    /// `run` has to call each job once, on a thread that may block, and soon: who waits for its
    /// kernel waits for that. With tokio this is
    ///
    /// ```ignore
    /// settings.blocking(|job| drop(tokio::task::spawn_blocking(job)))
    /// ```
    ///
    /// Without it, each gets a thread of its own, named `grainstore-job`. Jobs that are dropped
    /// instead of called end in [`RuntimeError::NotRun`](crate::RuntimeError::NotRun).
    pub fn blocking(
        mut self,
        run: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.blocking = Blocking::to(run);
        self
    }
}
