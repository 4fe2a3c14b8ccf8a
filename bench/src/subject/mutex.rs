//! The map that everybody starts with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Subject;
use crate::keys::Key;

/// A `HashMap` behind a `Mutex`, with the standard hasher and values in an `Arc`.
pub struct Mutexed<K: Key>(Mutex<HashMap<K, Arc<u64>>>);

impl<K: Key> Subject<K> for Mutexed<K> {
    const NAME: &'static str = "Mutex<HashMap>";
    const BOUNDED: bool = false;

    type Pin = Arc<u64>;

    fn new(capacity: usize) -> Self {
        Self(Mutex::new(HashMap::with_capacity(capacity)))
    }

    #[inline]
    fn get_or_build(&self, key: &K, mut build: impl FnMut() -> u64) -> Arc<u64> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = map.get(key) {
            return Arc::clone(value);
        }
        Arc::clone(map.entry(key.clone()).or_insert_with(|| Arc::new(build())))
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
