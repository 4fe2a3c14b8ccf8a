//! A request as a future: a hit is all that its first poll does, and only a miss is a task of its own.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::readers::slot::{ReaderSlot, take_back};
use super::{Core, Key};
use crate::Error;
use crate::cache::devices::DeviceSet;
use crate::cache::pinned::Pinned;
use crate::error::BoxError;

/// A look-up that has not been polled, or a miss that is under way.
///
/// The miss is made of `build` by `start` and boxed when it begins, so that a hit does not move
/// around what only a miss needs.
pub(crate) struct Request<'a, K: Key, V: Send + Sync + 'static, B, S, M> {
    core: &'a Core<K, V>,
    key: &'a K,
    devices: &'a DeviceSet,
    build: Option<(B, S)>,
    running: Option<Pin<Box<M>>>,
}

// Nothing in it is pinned in place: the miss is only polled in its box, and `build` only moved.
impl<K: Key, V: Send + Sync + 'static, B, S, M> Unpin for Request<'_, K, V, B, S, M> {}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// As `get_or_build`, for a task. The two differ in how they wait, and in nothing else.
    #[inline]
    pub(crate) fn get_or_build_async<'a, E: Into<BoxError>>(
        &'a self,
        key: &'a K,
        devices: &'a DeviceSet,
        build: impl Future<Output = Result<V, E>>,
    ) -> impl Future<Output = Result<Pinned<V>, Error>> {
        // It captures nothing: what it needs is in the request anyway.
        let start = |core: &'a Self, hash, key: &'a K, devices: &'a DeviceSet, build| {
            core.miss_async(hash, key, devices, build)
        };
        Request { core: self, key, devices, build: Some((build, start)), running: None }
    }
}

impl<'a, K: Key, V: Send + Sync + 'static, B, S, M> Future for Request<'a, K, V, B, S, M>
where
    S: FnOnce(&'a Core<K, V>, u64, &'a K, &'a DeviceSet, B) -> M,
    M: Future<Output = Result<Pinned<V>, Error>>,
{
    type Output = Result<Pinned<V>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut left = None;
        if this.running.is_none() {
            let hash = this.core.hash(this.key, this.devices);
            match this.core.find_at_once(hash, this.key, this.devices) {
                Ok(pin) => return Poll::Ready(Ok(pin)),
                Err(announced) => left = announced,
            }
        }
        match this.go_on(left, context) {
            Ok(pin) => Poll::Ready(Ok(pin)),
            Err(Some(error)) => Poll::Ready(Err(*error)),
            Err(None) => Poll::Pending,
        }
    }
}

impl<'a, K: Key, V: Send + Sync + 'static, B, S, M> Request<'a, K, V, B, S, M>
where
    S: FnOnce(&'a Core<K, V>, u64, &'a K, &'a DeviceSet, B) -> M,
    M: Future<Output = Result<Pinned<V>, Error>>,
{
    /// The value; or what the miss failed with, if it is not still under way. What this returns fits
    /// into two registers; a hit's result would go through memory as well if a miss's did.
    #[cold]
    #[inline(never)]
    fn go_on(
        &mut self,
        left: Option<ReaderSlot>,
        context: &mut Context<'_>,
    ) -> Result<Pinned<V>, Option<Box<Error>>> {
        take_back(left);
        let running = match &mut self.running {
            Some(running) => running,
            None => {
                let hash = self.core.hash(self.key, self.devices);
                if let Some(pin) = self.core.find_anywhere(hash, self.key, self.devices) {
                    return Ok(pin);
                }
                // There is one as long as there is nothing running.
                let Some((build, start)) = self.build.take() else { return Err(None) };
                self.running.insert(Box::pin(start(self.core, hash, self.key, self.devices, build)))
            }
        };
        match running.as_mut().poll(context) {
            Poll::Pending => Err(None),
            Poll::Ready(outcome) => Ok(outcome.map_err(Box::new)?),
        }
    }
}
