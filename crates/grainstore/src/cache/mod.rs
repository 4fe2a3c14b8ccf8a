//! The cache and its views.

pub(crate) mod bookmark;
pub(crate) mod builder;
pub(crate) mod core;
pub(crate) mod devices;
pub(crate) mod drain;
pub(crate) mod event;
pub(crate) mod listen;
pub(crate) mod pinned;
pub(crate) mod slot;
pub(crate) mod statistics;
pub(crate) mod view;

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use self::bookmark::Bookmark;
use self::builder::{Builder, Ownership};
use self::core::Core;
use self::core::readers::slot::take_back;
use self::devices::{DeviceSet, hash_with};
use self::drain::Drain;
use self::pinned::Pinned;
use self::slot::Slot;
use self::statistics::Statistics;
use self::view::View;
use crate::error::{BoxError, Error};
use crate::hashing::State;
use crate::sync::Arc;
use crate::{DeviceId, Hooks, Registration};

/// A bounded cache of values that are expensive to build and dangerous to free.
///
/// A handle: clones share one cache. See the crate's front page for a tour.
///
/// A key's `Hash`, `Eq` and `Clone` may panic, and the panic goes to the caller; they must not call
/// the cache, since some run under its lock. All other code of the user runs under no lock.
pub struct Cache<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    core: Arc<Core<K, V>>,
    alive: Arc<Alive<K, V>>,
    /// The core's, where a look-up can begin with them while the core is being loaded.
    id: u64,
    hasher: State,
}

/// Shared by the handles: dropped with the last of them.
struct Alive<K: core::Key, V: Send + Sync + 'static>(Arc<Core<K, V>>);

impl<K: core::Key, V: Send + Sync + 'static> Drop for Alive<K, V> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<K, V> Cache<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Starts a configuration.
    pub fn builder() -> Builder<K, V> {
        Builder::new()
    }

    pub(crate) fn from_core(core: Arc<Core<K, V>>) -> Self {
        let alive = Arc::new(Alive(core.clone()));
        let (id, hasher) = (core.id, core.hasher());
        Self { core, alive, id, hasher }
    }

    #[inline]
    pub(crate) fn hash(&self, key: &K, devices: &DeviceSet) -> u64 {
        hash_with(&self.hasher, key, devices)
    }

    pub(crate) fn core(&self) -> &Arc<Core<K, V>> {
        &self.core
    }

    /// The value of this key, pinned; built by `build`, on this thread and under no lock, if it is
    /// not there and nobody else is building it.
    ///
    /// Waits for a build of the same key that is under way, and for nothing else. A hit allocates
    /// nothing.
    ///
    /// # Errors
    /// See [`Error`]; after any of them nothing of the build is left, and the next request builds
    /// again.
    #[inline]
    pub fn get_or_build<F, E>(&self, key: &K, build: F) -> Result<Pinned<V>, Error>
    where
        F: FnOnce() -> Result<V, E>,
        E: Into<BoxError>,
    {
        let hash = self.hash(key, &DeviceSet::None);
        self.core.get_or_build(hash, key, &DeviceSet::None, build)
    }

    /// As [`get_or_build`](Self::get_or_build), for a task, on any executor or none. Blocking
    /// callers and tasks share one build.
    ///
    /// Nothing happens before the first poll. `build` is polled wherever this future is polled; if
    /// this future is dropped while it leads, one of those who wait goes on with its own `build`.
    /// Making room, on a miss, runs `idle` and `release` within the poll. A hit allocates nothing.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn get_or_build_async<'k, F, E>(
        &'k self,
        key: &'k K,
        build: F,
    ) -> impl Future<Output = Result<Pinned<V>, Error>>
    where
        F: Future<Output = Result<V, E>>,
        E: Into<BoxError>,
    {
        self.core.get_or_build_async(key, &DeviceSet::NONE, build)
    }

    /// The value of this key if it is resident, pinned. Never builds, and waits for no build.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Pinned<V>> {
        let hash = self.hash(key, &DeviceSet::None);
        self.core.get(hash, key, &DeviceSet::None)
    }

    /// As [`get`](Self::get), but only what can be had without a lock: nearly always what this thread
    /// has asked for before. It may miss a value that is there. Never blocks.
    #[must_use]
    #[inline]
    pub fn try_get(&self, key: &K) -> Option<Pinned<V>> {
        let hash = self.hash(key, &DeviceSet::None);
        self.core.try_get(hash, key, &DeviceSet::None)
    }

    /// The value that this bookmark leads to, if it is this cache's and resident and `wanted` says
    /// yes of it; then this is a use of it. Nothing is hashed, probed or compared: what the value was
    /// asked for, the bookmark's owner knows. Never blocks.
    ///
    /// It finds what it can find at once. What is wanted and there may be missed, as on a thread's
    /// first look, or while it holds other pins: then [`try_get`](Self::try_get) finds it.
    ///
    /// `wanted` looks at a value that is pinned for as long, so it must not wait for its release, and
    /// a value that it looks at is not evicted in that moment.
    #[must_use]
    #[inline(always)]
    pub fn try_get_at(
        &self,
        bookmark: &Bookmark,
        wanted: impl FnOnce(&V) -> bool,
    ) -> Option<Pinned<V>> {
        match self.core.find_at(self.id, bookmark, wanted) {
            Ok(pin) => Some(pin),
            Err(left) => {
                take_back(left);
                None
            }
        }
    }

    /// Retires the value of this key, or dooms its build.
    pub fn remove(&self, key: &K) -> Drain<K> {
        self.drain(self.core.remove(key, &DeviceSet::None))
    }

    /// A handle of one key that its caller keeps: its hits skip the hash and the probe.
    pub fn slot(&self, key: K) -> Slot<K, V> {
        Slot::new(self.clone(), key, DeviceSet::None)
    }

    /// The cache as seen from one device: the same key on two devices is two values, and without a
    /// device a third.
    pub fn on(&self, device: &DeviceId) -> View<'_, K, V> {
        View::new(self, DeviceSet::One(*device))
    }

    /// The cache as seen from a set of devices, for values that live on all of them. Order and
    /// repetition do not matter; retiring one of the devices retires the value.
    pub fn on_all(&self, devices: &[DeviceId]) -> View<'_, K, V> {
        View::new(self, DeviceSet::of(devices))
    }

    /// Retires exactly the values of this device, and dooms the builds for it. The drain also
    /// covers what was retired earlier: when it is done, nothing of the device is left. Costs about
    /// the number of those values, whatever else the cache holds.
    pub fn evict_device(&self, device: &DeviceId) -> Drain<K> {
        self.drain(self.core.evict_device(*device))
    }

    /// Retires every resident value. A cache that [borrows](Ownership::Borrows) also dooms every
    /// build in flight; in one that owns, those are good and will be installed.
    pub fn clear(&self) -> Drain<K> {
        self.drain(self.core.clear())
    }

    fn drain(&self, state: Arc<core::drains::DrainState>) -> Drain<K> {
        Drain::new(state, self.core.clone())
    }

    /// The number of resident values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Whether no value is resident.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cache's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.config.name
    }

    /// The bound on live values, if there is one.
    #[must_use]
    pub fn capacity(&self) -> Option<usize> {
        self.core.config.capacity
    }

    /// Whether the values own their resources.
    #[must_use]
    pub fn ownership(&self) -> Ownership {
        self.core.config.ownership
    }

    /// The figures. Waits for no build.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.core.statistics()
    }

    /// Releases, on this thread, the retired values that nobody pins and that have become idle.
    /// How many those were. Inside an `idle` or a release of this cache it does nothing.
    pub fn reap(&self) -> usize {
        self.core.reap()
    }

    /// Says that values may have become idle: whoever waits for room or for a release asks again
    /// at once.
    pub fn poke(&self) {
        self.core.poke();
    }

    /// Blocks until a request for a new key would find a place, or the time is over. Whether it
    /// would. Another thread may take the place first.
    #[must_use]
    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        self.core.wait_for_room(timeout)
    }

    /// As [`wait_for_room`](Self::wait_for_room), for a task, as long as it takes. Between signs it
    /// asks again at growing distances, woken by one helper thread of the process that lives as long
    /// as somebody waits so.
    pub async fn room(&self) {
        self.core.room().await;
    }

    /// Has this cache follow the hooks: a device's destruction evicts the device, and clear-all
    /// clears a cache that borrows. The registration does not keep the cache alive.
    pub fn listen(&self, hooks: &Hooks) -> Registration {
        listen::listen(hooks, self)
    }
}

impl<K, V> Clone for Cache<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            alive: self.alive.clone(),
            id: self.id,
            hasher: self.hasher.clone(),
        }
    }
}

impl<K, V> fmt::Debug for Cache<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("name", &self.name())
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
