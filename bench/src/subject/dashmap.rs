//! dashmap: a map in shards, each behind a lock.

use std::sync::Arc;

use super::Subject;
use crate::keys::Key;

/// Its map, with values in an `Arc`, so that they outlive the shard's lock.
pub struct DashMap<K: Key>(dashmap::DashMap<K, Arc<u64>>);

impl<K: Key> Subject<K> for DashMap<K> {
    const NAME: &'static str = "dashmap";
    const BOUNDED: bool = false;

    type Pin = Arc<u64>;

    fn new(capacity: usize) -> Self {
        Self(dashmap::DashMap::with_capacity(capacity))
    }

    #[inline]
    fn get_or_build(&self, key: &K, mut build: impl FnMut() -> u64) -> Arc<u64> {
        if let Some(value) = self.0.get(key) {
            return Arc::clone(&value);
        }
        Arc::clone(&self.0.entry(key.clone()).or_insert_with(|| Arc::new(build())))
    }

    fn clear(&self) {
        self.0.clear();
    }
}
