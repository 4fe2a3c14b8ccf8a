//! Grainstore.

use std::convert::Infallible;

use grainstore::{Cache, Error, Pinned};

use super::Subject;
use crate::keys::Key;

/// [`Cache`], with nothing configured but its capacity.
pub struct Ours<K: Key>(pub Cache<K, u64>);

impl<K: Key> Subject<K> for Ours<K> {
    const NAME: &'static str = "grainstore";

    type Pin = Pinned<u64>;

    fn new(capacity: usize) -> Self {
        match Cache::builder().capacity(capacity).build() {
            Ok(cache) => Self(cache),
            Err(error) => panic!("a capacity of {capacity} was refused: {error}"),
        }
    }

    #[inline]
    fn get_or_build(&self, key: &K, mut build: impl FnMut() -> u64) -> Pinned<u64> {
        match self.0.get_or_build(key, || Ok::<_, Infallible>(build())) {
            Ok(pin) => pin,
            Err(error) => self.ask_again(key, error, build),
        }
    }

    fn clear(&self) {
        drop(self.0.clear());
    }

    fn reap(&self) {
        self.0.reap();
    }
}

impl<K: Key> Ours<K> {
    /// A cache whose places are all being released by another thread's clear says that it is busy.
    /// The peers let such a value overlap with the new one; ours asks again.
    #[cold]
    #[inline(never)]
    fn ask_again(&self, key: &K, mut error: Error, mut build: impl FnMut() -> u64) -> Pinned<u64> {
        while let Error::Busy { .. } = error {
            std::hint::spin_loop();
            match self.0.get_or_build(key, || Ok::<_, Infallible>(build())) {
                Ok(pin) => return pin,
                Err(again) => error = again,
            }
        }
        panic!("a request was refused: {error}")
    }
}
