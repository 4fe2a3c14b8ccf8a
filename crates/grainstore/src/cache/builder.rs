//! How a cache is configured, and which configurations are refused.

use std::error::Error as StdError;
use std::fmt;

use super::Cache;
use super::core::room::as_borrower;
use super::core::{Core, Key};
use crate::ReleaseError;
use crate::error::BoxError;
use crate::sync::Arc;

/// Whether a cache's values own their resources, or close over another cache's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ownership {
    /// The values own what they hold: modules, libraries. A clear lets builds in flight go on.
    #[default]
    Owns,
    /// The values close over values of another cache: memos, plans. A clear also dooms the builds
    /// in flight, since they may have seen what is being torn down.
    Borrows,
}

type Check<V> = Box<dyn Fn(&V) -> bool + Send + Sync>;
type Permit = Box<dyn Fn() -> bool + Send + Sync>;
type Release<V> = Box<dyn Fn(V) -> Result<(), BoxError> + Send + Sync>;
type Sink = Box<dyn Fn(&ReleaseError) + Send + Sync>;

/// The settings of a cache, fixed when it is built.
pub(crate) struct Config<K, V> {
    pub(crate) name: Arc<str>,
    pub(crate) capacity: Option<usize>,
    pub(crate) idle: Option<Check<V>>,
    pub(crate) may_release: Option<Permit>,
    pub(crate) release: Option<Release<V>>,
    pub(crate) on_release_error: Option<Sink>,
    pub(crate) ownership: Ownership,
    key: std::marker::PhantomData<fn(K)>,
}

/// Collects the settings of a [`Cache`].
///
/// Every callback runs under no lock and may call the cache. A panic in one is contained: see each.
#[must_use]
pub struct Builder<K, V> {
    config: Config<K, V>,
    lenders: Vec<Box<dyn FnOnce(&Arc<Core<K, V>>) + Send>>,
}

impl<K, V> Builder<K, V> {
    pub(crate) fn new() -> Self {
        let config = Config {
            name: Arc::from("cache"),
            capacity: None,
            idle: None,
            may_release: None,
            release: None,
            on_release_error: None,
            ownership: Ownership::Owns,
            key: std::marker::PhantomData,
        };
        Self { config, lenders: Vec::new() }
    }

    /// A name for errors, logs and reports. `cache` if none is given.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = name.into().into();
        self
    }

    /// The greatest number of live values: resident, being built, or retired and not yet released.
    /// Never exceeded. Without it the cache is unbounded.
    pub fn capacity(mut self, values: usize) -> Self {
        self.config.capacity = Some(values);
        self
    }

    /// Whether a value may be evicted or released now: the GPU is done with it. Asked only about
    /// values that nobody pins. Without it every value is always idle; a panic means busy.
    pub fn idle(mut self, idle: impl Fn(&V) -> bool + Send + Sync + 'static) -> Self {
        self.config.idle = Some(Box::new(idle));
        self
    }

    /// What to do with a value that leaves the cache for good: it gets the value, exactly once, and
    /// returns nothing or a `Result<(), E>`. Without it the value is dropped. A panic counts as a
    /// failure, [`ReleaseError::Panicked`].
    pub fn release<R: ReleaseOutcome>(
        mut self,
        release: impl Fn(V) -> R + Send + Sync + 'static,
    ) -> Self {
        self.config.release = Some(Box::new(move |value| release(value).into_result()));
        self
    }

    /// Whether the calling thread may release values now. Where it says no, a value waits for the
    /// next miss, `reap` or `Drain::wait` on a thread where it says yes, and a miss that would need
    /// a release answers [`Busy`](crate::Error::Busy). A panic means no.
    pub fn may_release(mut self, may: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.config.may_release = Some(Box::new(may));
        self
    }

    /// Whether the values own their resources. [`Ownership::Owns`] if not said.
    pub fn ownership(mut self, ownership: Ownership) -> Self {
        self.config.ownership = ownership;
        self
    }

    /// The values close over values of that cache. Says [`Ownership::Borrows`], and has that cache
    /// ask this one to give up idle values before it answers [`Busy`](crate::Error::Busy).
    pub fn borrows_from<K2, V2>(mut self, lower: &Cache<K2, V2>) -> Self
    where
        K: std::hash::Hash + Eq + Clone + Send + Sync + 'static,
        V: Send + Sync + 'static,
        K2: std::hash::Hash + Eq + Clone + Send + Sync + 'static,
        V2: Send + Sync + 'static,
    {
        self.config.ownership = Ownership::Borrows;
        let lower = Arc::downgrade(lower.core());
        self.lenders.push(Box::new(move |core| {
            if let Some(lower) = lower.upgrade() {
                lower.add_borrower(as_borrower(core));
            }
        }));
        self
    }

    /// Receives the release errors that no call can return: of values released by the drop of
    /// their last pin, of victims of the bound, and of drains that were dropped unread.
    pub fn on_release_error(mut self, sink: impl Fn(&ReleaseError) + Send + Sync + 'static) -> Self {
        self.config.on_release_error = Some(Box::new(sink));
        self
    }

    /// The cache.
    ///
    /// # Errors
    /// A capacity of 0.
    pub fn build(self) -> Result<Cache<K, V>, ConfigError>
    where
        K: std::hash::Hash + Eq + Clone + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        if self.config.capacity == Some(0) {
            let reason = "a cache of no places can hold nothing; leave it out for no bound";
            return Err(ConfigError { field: "capacity", reason });
        }
        let core = Core::new(self.config);
        for lend in self.lenders {
            lend(&core);
        }
        Ok(Cache::from_core(core))
    }
}

impl<K, V> fmt::Debug for Builder<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.config.name)
            .field("capacity", &self.config.capacity)
            .field("ownership", &self.config.ownership)
            .finish_non_exhaustive()
    }
}

/// What a release callback may return: nothing, or a result whose error can be boxed.
pub trait ReleaseOutcome {
    /// The outcome as a result.
    ///
    /// # Errors
    /// The callback's own.
    fn into_result(self) -> Result<(), Box<dyn StdError + Send + Sync>>;
}

impl ReleaseOutcome for () {
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> ReleaseOutcome for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// A configuration that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    field: &'static str,
    reason: &'static str,
}

impl ConfigError {
    /// The builder's setting that was refused.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl StdError for ConfigError {}

const _: () = {
    const fn key<K: Key>() {}
    key::<u64>();
};
