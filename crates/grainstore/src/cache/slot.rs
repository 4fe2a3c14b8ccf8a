//! A caller-held handle of one key: after the first look-up it skips the hash and the probe.

use std::fmt;
use std::hash::Hash;
use std::ptr::NonNull;

use super::Cache;
use super::core::entry::Grain;
use super::core::readers::local;
use super::core::readers::slot::{ReaderSlot, take_back};
use super::devices::DeviceSet;
use super::pinned::Pinned;
use crate::error::{BoxError, Error};

/// One key of a cache, for those who ask for it again and again: a launch site, a plan's step.
///
/// It remembers where the value is, not the value: it pins nothing, and never serves what has left
/// the cache. It is a handle of the cache, and keeps it open. One slot serves one caller at a time
/// (its look-ups take `&mut self`); make one for each.
pub struct Slot<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    cache: Cache<K, V>,
    key: K,
    devices: DeviceSet,
    known: Option<Known<V>>,
}

/// Where the value was, and which build it was of.
struct Known<V> {
    grain: NonNull<Grain<V>>,
    /// The grain's index, at hand.
    index: u32,
    serial: u64,
}

// SAFETY: the pointer is to a grain in the cache's arena, which any thread may touch as long as a
// handle of the cache lives; the slot holds one.
unsafe impl<V: Send + Sync> Send for Known<V> {}
// SAFETY: as above.
unsafe impl<V: Send + Sync> Sync for Known<V> {}

impl<K, V> Slot<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    pub(crate) fn new(cache: Cache<K, V>, key: K, devices: DeviceSet) -> Self {
        Self { cache, key, devices, known: None }
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// As [`Cache::get_or_build`], for this slot's key and devices.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn get_or_build<F, E>(&mut self, build: F) -> Result<Pinned<V>, Error>
    where
        F: FnOnce() -> Result<V, E>,
        E: Into<BoxError>,
    {
        match self.hit() {
            Ok(pin) => Ok(pin),
            Err(left) => self.look_up(left, build).map_err(|error| *error),
        }
    }

    /// The error is boxed, so that what this returns fits into two registers.
    #[cold]
    #[inline(never)]
    fn look_up<F, E>(&mut self, left: Option<ReaderSlot>, build: F) -> Result<Pinned<V>, Box<Error>>
    where
        F: FnOnce() -> Result<V, E>,
        E: Into<BoxError>,
    {
        let hash = self.cache.hash(&self.key, &self.devices);
        let found = self.cache.core().build_anyhow(left, hash, &self.key, &self.devices, build);
        self.remember(found.as_ref().ok());
        found
    }

    /// As [`Cache::get_or_build_async`], for this slot's key and devices.
    ///
    /// # Errors
    /// As there.
    pub async fn get_or_build_async<F, E>(&mut self, build: F) -> Result<Pinned<V>, Error>
    where
        F: Future<Output = Result<V, E>>,
        E: Into<BoxError>,
    {
        match self.hit() {
            Ok(pin) => return Ok(pin),
            Err(left) => take_back(left),
        }
        let found = self.cache.core().get_or_build_async(&self.key, &self.devices, build).await;
        self.remember(found.as_ref().ok());
        found
    }

    /// As [`Cache::get`], for this slot's key and devices.
    #[inline]
    pub fn get(&mut self) -> Option<Pinned<V>> {
        match self.hit() {
            Ok(pin) => Some(pin),
            Err(left) => self.find(left),
        }
    }

    #[cold]
    #[inline(never)]
    fn find(&mut self, left: Option<ReaderSlot>) -> Option<Pinned<V>> {
        let hash = self.cache.hash(&self.key, &self.devices);
        let found = self.cache.core().get_anyhow(left, hash, &self.key, &self.devices);
        self.remember(found.as_ref());
        found
    }

    /// The value where it was last time, if it is still there and resident. Otherwise what has to be
    /// given up before the long way.
    #[inline(always)]
    fn hit(&self) -> Result<Pinned<V>, Option<ReaderSlot>> {
        let Some(known) = &self.known else { return Err(None) };
        // SAFETY: the grain lies in the arena of the cache, of which this slot is a handle.
        let grain = unsafe { known.grain.as_ref() };
        let Some(slot) = local::recent(self.cache.id) else { return Err(None) };
        self.cache.core().find_build(slot, (grain, known.index, known.serial), |_| true)
    }

    #[cold]
    fn remember(&mut self, found: Option<&Pinned<V>>) {
        self.known = found.map(|pin| {
            let grain = pin.grain();
            Known { grain: NonNull::from(grain), index: grain.index, serial: grain.serial() }
        });
    }
}

impl<K, V> fmt::Debug for Slot<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + fmt::Debug + 'static,
    V: Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("cache", &self.cache.name())
            .field("key", &self.key)
            .field("devices", &self.devices.as_slice())
            .finish_non_exhaustive()
    }
}
