//! Where artifacts are kept beyond this process: the trait that every store implements.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use grainstore::KernelKey;

use crate::Artifact;

/// A place for artifacts. The runtime asks its stores in order, nearest first.
///
/// All calls may block on I/O; the runtime makes them from the thread that builds, under no lock.
pub trait Store: Send + Sync + 'static {
    /// A short name for messages and figures: `disk`, `remote`.
    fn name(&self) -> &str;

    /// The artifact of this key, verified, or `None`. What is there but not whole is `None`.
    ///
    /// # Errors
    /// When the place cannot be reached or read. The runtime then goes on without it.
    fn get(&self, key: &KernelKey) -> Result<Option<Artifact>, StoreError>;

    /// As [`get`](Self::get); and what is missing, the caller makes: until the lease, a [`Guard`], that came
    /// with that answer is dropped, others who ask this for the same key wait, at most for `bound`.
    ///
    /// A store that can't have others wait gives no lease, and that is what this does unless it is
    /// implemented.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn get_or_lease(&self, key: &KernelKey, bound: Duration) -> Result<LookUp, StoreError> {
        let _ = bound;
        Ok(match self.get(key)? {
            Some(artifact) => LookUp::Found(artifact),
            None => LookUp::Missing(None),
        })
    }

    /// Called before this key's artifact, which this store gave, goes to a loader. The guard is
    /// dropped when the loader comes back, whatever it says: so a store can tell which artifact it
    /// was that ended a process, and keep it from the next one. A store that does not watch loads
    /// gives none, and that is what this does unless it is implemented.
    fn loading(&self, key: &KernelKey) -> Option<Guard> {
        let _ = key;
        None
    }

    /// Keeps this artifact under this key; what was there is replaced in one step.
    ///
    /// # Errors
    /// When it cannot be kept. The runtime then goes on without it.
    fn put(
        &self,
        key: &KernelKey,
        artifact: &Artifact,
        facts: &BuildFacts,
    ) -> Result<(), StoreError>;

    /// Called when a loader said that this key's artifact is invalid. A store of this machine
    /// removes it; a store that others share does nothing.
    ///
    /// # Errors
    /// When it should have been removed and could not be.
    fn discard(&self, key: &KernelKey) -> Result<(), StoreError>;
}

/// What a store has for a key, and whether others wait until it has more.
#[derive(Debug)]
pub enum LookUp {
    /// The artifact, verified.
    Found(Artifact),
    /// Nothing. While the lease is held, others wait for what the runtime makes.
    Missing(Option<Guard>),
}

/// What a store holds on behalf of the runtime, until this is dropped.
#[must_use = "dropped at once, it holds nothing"]
pub struct Guard {
    _held: Box<dyn Send>,
}

impl Guard {
    /// A guard that holds this, and drops it with itself.
    pub fn new(held: impl Send + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

/// What is known of a build, kept beside its artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildFacts {
    /// How long the compiler took.
    pub compile_time: Option<Duration>,
}

impl BuildFacts {
    /// The facts of a build that took this long.
    #[must_use]
    pub fn took(compile_time: Duration) -> Self {
        Self { compile_time: Some(compile_time) }
    }
}

/// Why a store could not do its work. Never fatal to a build.
#[derive(Debug)]
pub struct StoreError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    withholds: bool,
}

impl StoreError {
    /// A failure in words: what was tried, where, and what to do about it.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None, withholds: false }
    }

    /// The same with the error that caused it.
    #[must_use]
    pub fn with_source(
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { message: message.into(), source: Some(source.into()), withholds: false }
    }

    /// The store works, and withholds the artifact that was asked for: for what it is, and not for
    /// what the store is. The runtime says so for each such artifact, builds the kernel afresh
    /// without asking the stores behind this one, and puts it as after a miss.
    #[must_use]
    pub fn withholding(mut self) -> Self {
        self.withholds = true;
        self
    }

    /// Whether the store works, and only [withholds](Self::withholding) an artifact.
    #[must_use]
    pub fn withholds(&self) -> bool {
        self.withholds
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
