//! How a cache is configured, and which configurations are refused.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use super::Cache;
use super::core::Core;
use super::core::borrowers::as_borrower;
use super::event::Event;
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
type Weigher<K, V> = Box<dyn Fn(&K, &V) -> u64 + Send + Sync>;
type Observer<K> = Box<dyn Fn(&Event<'_, K>) + Send + Sync>;
/// Tells a lower cache of the cache that has just been built.
type Lender<K, V> = Box<dyn FnOnce(&Arc<Core<K, V>>) + Send>;
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
    pub(crate) weigher: Option<Weigher<K, V>>,
    pub(crate) max_weight: Option<u64>,
    pub(crate) observer: Option<Observer<K>>,
    pub(crate) takeover_after: Option<Duration>,
}

impl<K, V> Config<K, V> {
    /// Whether anything of the user's is told of a value when it is built.
    pub(crate) fn hears_of_values(&self) -> bool {
        self.observer.is_some() || self.weigher.is_some()
    }
}

/// Collects the settings of a [`Cache`].
///
/// Every callback runs under no lock and may call the cache. A panic in one is contained: see each.
#[must_use]
pub struct Builder<K, V> {
    config: Config<K, V>,
    lenders: Vec<Lender<K, V>>,
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
            weigher: None,
            max_weight: None,
            observer: None,
            takeover_after: None,
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

    /// What a value weighs, in the unit of [`max_weight`](Self::max_weight). Asked once, when the
    /// value is built. A panic means that the value is handed out but not kept.
    pub fn weigher(mut self, weigher: impl Fn(&K, &V) -> u64 + Send + Sync + 'static) -> Self {
        self.config.weigher = Some(Box::new(weigher));
        self
    }

    /// The greatest weight of all values together. For a new value idle ones go until it fits; if
    /// it cannot fit, none goes, and the new value is handed out pinned but not kept. What has left
    /// the cache counts until it is released. Needs a [`weigher`](Self::weigher).
    pub fn max_weight(mut self, weight: u64) -> Self {
        self.config.max_weight = Some(weight);
        self
    }

    /// How long a blocking caller waits for another's build before it builds for itself, in a place
    /// of its own. The late value is released, and its caller gets the one that is there, or
    /// [`Error::Superseded`](crate::Error::Superseded). Without it callers wait as long as it takes;
    /// one that blocks the executor which the leading future needs would wait for ever.
    pub fn takeover_after(mut self, patience: Duration) -> Self {
        self.config.takeover_after = Some(patience);
        self
    }

    /// Told of builds, evictions and releases, on the thread where they happen; never of a hit. A
    /// panic in it is contained.
    pub fn observer(mut self, observer: impl Fn(&Event<'_, K>) + Send + Sync + 'static) -> Self {
        self.config.observer = Some(Box::new(observer));
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
    pub fn on_release_error(
        mut self,
        sink: impl Fn(&ReleaseError) + Send + Sync + 'static,
    ) -> Self {
        self.config.on_release_error = Some(Box::new(sink));
        self
    }

    /// The cache.
    ///
    /// # Errors
    /// A capacity of 0, a weight limit of 0, or a weigher or a limit without the other.
    pub fn build(self) -> Result<Cache<K, V>, ConfigError>
    where
        K: std::hash::Hash + Eq + Clone + Send + Sync + 'static,
        V: Send + Sync + 'static,
    {
        let config = &self.config;
        let refuse = |field, reason| Err(ConfigError { field, reason });
        if config.capacity == Some(0) {
            return refuse("capacity", "0 places can hold nothing; leave it out for no bound");
        }
        match (&config.weigher, config.max_weight) {
            (_, Some(0)) => {
                return refuse("max_weight", "0 can hold nothing; leave it out for no bound");
            }
            (None, Some(_)) => {
                return refuse("max_weight", "there is no weigher to say what a value weighs");
            }
            (Some(_), None) => {
                return refuse("weigher", "without a max_weight nobody would ask it");
            }
            _ => {}
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
