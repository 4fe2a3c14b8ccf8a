//! moka.

use std::sync::Arc;

use super::Subject;
use crate::keys::Key;

/// Its sync cache.
pub struct Moka<K: Key>(moka::sync::Cache<K, Arc<u64>>);

impl<K: Key> Subject<K> for Moka<K> {
    const NAME: &'static str = "moka";

    type Pin = Arc<u64>;

    fn new(capacity: usize) -> Self {
        Self(moka::sync::Cache::new(capacity as u64))
    }

    #[inline]
    fn get_or_build(&self, key: &K, mut build: impl FnMut() -> u64) -> Arc<u64> {
        self.0.get_with_by_ref(key, || Arc::new(build()))
    }

    fn clear(&self) {
        self.0.invalidate_all();
    }
}
