//! quick_cache, plain and with values in use pinned.

use std::convert::Infallible;
use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, Lifecycle, UnitWeighter};

use super::Subject;
use crate::keys::Key;

/// Its cache, as its front page has it.
pub struct QuickCache<K: Key>(Cache<K, Arc<u64>>);

impl<K: Key> Subject<K> for QuickCache<K> {
    const NAME: &'static str = "quick_cache";

    type Pin = Arc<u64>;

    fn new(capacity: usize) -> Self {
        Self(Cache::new(capacity))
    }

    #[inline]
    fn get_or_build(&self, key: &K, mut build: impl FnMut() -> u64) -> Arc<u64> {
        let Ok(value) = self.0.get_or_insert_with(key, || Ok::<_, Infallible>(Arc::new(build())));
        value
    }

    fn clear(&self) {
        self.0.clear();
    }
}

/// Its cache, told that a value somebody holds may not be evicted: as near as it comes to pins.
pub struct QuickCachePinning<K: Key>(
    Cache<K, Arc<u64>, UnitWeighter, DefaultHashBuilder, InUseIsPinned>,
);

/// The rule.
#[derive(Clone, Default)]
pub struct InUseIsPinned(DefaultLifecycle<(), ()>);

impl<K> Lifecycle<K, Arc<u64>> for InUseIsPinned {
    type RequestState = ();

    fn is_pinned(&self, _key: &K, value: &Arc<u64>) -> bool {
        Arc::strong_count(value) > 1
    }
}

impl<K: Key> Subject<K> for QuickCachePinning<K> {
    const NAME: &'static str = "quick_cache, pinning";

    type Pin = Arc<u64>;

    fn new(capacity: usize) -> Self {
        let hasher = DefaultHashBuilder::default();
        let weight = capacity as u64;
        Self(Cache::with(capacity, weight, UnitWeighter, hasher, InUseIsPinned::default()))
    }

    #[inline]
    fn get_or_build(&self, key: &K, mut build: impl FnMut() -> u64) -> Arc<u64> {
        let Ok(value) = self.0.get_or_insert_with(key, || Ok::<_, Infallible>(Arc::new(build())));
        value
    }

    fn clear(&self) {
        self.0.clear();
    }
}
