//! foyer's in-memory cache.

use foyer_memory::{Cache, CacheBuilder, CacheEntry, CacheProperties};

use super::Subject;
use crate::keys::Key;

/// Its cache. The entry that it hands out keeps the value alive, so no `Arc` is needed.
pub struct Foyer<K: Key>(Cache<K, u64>);

impl<K: Key> Subject<K> for Foyer<K> {
    const NAME: &'static str = "foyer";

    type Pin = CacheEntry<K, u64>;

    fn new(capacity: usize) -> Self {
        Self(CacheBuilder::new(capacity).build::<CacheProperties>())
    }

    /// Its own call for this is asynchronous and wants a runtime; this is what sync callers write.
    #[inline]
    fn get_or_build(&self, key: &K, mut build: impl FnMut() -> u64) -> CacheEntry<K, u64> {
        if let Some(entry) = self.0.get(key) {
            return entry;
        }
        self.0.insert(key.clone(), build())
    }

    fn clear(&self) {
        self.0.clear();
    }
}
