//! papaya: a map whose reads take no lock.

use std::sync::Arc;

use papaya::HashMap;

use super::Subject;
use crate::keys::Key;

/// Its map, with values in an `Arc`, so that they outlive the guard.
pub struct Papaya<K: Key>(HashMap<K, Arc<u64>>);

impl<K: Key> Subject<K> for Papaya<K> {
    const NAME: &'static str = "papaya";
    const BOUNDED: bool = false;

    type Pin = Arc<u64>;

    fn new(capacity: usize) -> Self {
        Self(HashMap::with_capacity(capacity))
    }

    #[inline]
    fn get_or_build(&self, key: &K, mut build: impl FnMut() -> u64) -> Arc<u64> {
        let map = self.0.pin();
        if let Some(value) = map.get(key) {
            return Arc::clone(value);
        }
        Arc::clone(map.get_or_insert_with(key.clone(), || Arc::new(build())))
    }

    fn clear(&self) {
        self.0.pin().clear();
    }
}
