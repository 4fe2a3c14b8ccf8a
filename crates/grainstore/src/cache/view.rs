//! A cache as seen from a device, or from a set of devices.

use std::fmt;
use std::hash::Hash;

use super::Cache;
use super::devices::DeviceSet;
use super::drain::Drain;
use super::pinned::Pinned;
use super::slot::Slot;
use crate::error::{BoxError, Error};

/// Look-ups for values that live on certain devices. Made by [`Cache::on`] and [`Cache::on_all`];
/// costs nothing to make for one device.
pub struct View<'a, K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    cache: &'a Cache<K, V>,
    devices: DeviceSet,
}

impl<'a, K, V> View<'a, K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    pub(crate) fn new(cache: &'a Cache<K, V>, devices: DeviceSet) -> Self {
        Self { cache, devices }
    }

    /// As [`Cache::get_or_build`], on this view's devices.
    ///
    /// # Errors
    /// As there, and [`Error::DeviceDestroyed`] when one of the devices is evicted during the build.
    #[inline]
    pub fn get_or_build<F, E>(&self, key: &K, build: F) -> Result<Pinned<V>, Error>
    where
        F: FnOnce() -> Result<V, E>,
        E: Into<BoxError>,
    {
        let hash = self.cache.hash(key, &self.devices);
        self.cache.core().get_or_build(hash, key, &self.devices, build)
    }

    /// As [`Cache::get_or_build_async`], on this view's devices.
    ///
    /// # Errors
    /// As [`get_or_build`](Self::get_or_build).
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
        self.cache.core().get_or_build_async(key, &self.devices, build)
    }

    /// As [`Cache::get`], on this view's devices.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Pinned<V>> {
        let hash = self.cache.hash(key, &self.devices);
        self.cache.core().get(hash, key, &self.devices)
    }

    /// As [`Cache::try_get`], on this view's devices.
    #[must_use]
    #[inline]
    pub fn try_get(&self, key: &K) -> Option<Pinned<V>> {
        let hash = self.cache.hash(key, &self.devices);
        self.cache.core().try_get(hash, key, &self.devices)
    }

    /// As [`Cache::slot`], on this view's devices.
    pub fn slot(&self, key: K) -> Slot<K, V> {
        Slot::new(self.cache.clone(), key, self.devices.clone())
    }

    /// As [`Cache::remove`], on this view's devices.
    pub fn remove(&self, key: &K) -> Drain<K> {
        let core = self.cache.core();
        Drain::new(core.remove(key, &self.devices), core.clone())
    }
}

impl<K, V> fmt::Debug for View<'_, K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("cache", &self.cache)
            .field("devices", &self.devices.as_slice())
            .finish()
    }
}
