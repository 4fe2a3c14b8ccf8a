//! A request as a future: a hit is all that its first poll does, and only a miss is a task of its own.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Core, Key};
use crate::Error;
use crate::cache::devices::DeviceSet;
use crate::cache::pinned::Pinned;
use crate::error::BoxError;
use crate::sync::Arc;

/// A look-up that has not been polled, or a miss that is under way.
///
/// The miss is boxed when it starts, so that a hit does not move around what only a miss needs.
pub(crate) struct Request<'a, K: Key, V: Send + Sync + 'static, M> {
    core: &'a Arc<Core<K, V>>,
    key: &'a K,
    devices: &'a DeviceSet,
    miss: Option<M>,
    running: Option<Pin<Box<M>>>,
}

// Nothing in it is pinned in place: the miss is only polled in its box.
impl<K: Key, V: Send + Sync + 'static, M> Unpin for Request<'_, K, V, M> {}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// As `get_or_build`, for a task. The two differ in how they wait, and in nothing else.
    #[inline]
    pub(crate) fn get_or_build_async<'a, E: Into<BoxError>>(
        self: &'a Arc<Self>,
        key: &'a K,
        devices: &'a DeviceSet,
        build: impl Future<Output = Result<V, E>>,
    ) -> impl Future<Output = Result<Pinned<V>, Error>> {
        let miss = async move {
            let hash = self.hash(key, devices);
            self.miss_async(hash, key, devices, build).await
        };
        Request { core: self, key, devices, miss: Some(miss), running: None }
    }
}

impl<K: Key, V: Send + Sync + 'static, M> Future for Request<'_, K, V, M>
where
    M: Future<Output = Result<Pinned<V>, Error>>,
{
    type Output = Result<Pinned<V>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.running.is_none() {
            let hash = this.core.hash(this.key, this.devices);
            if let Some(pin) = this.core.find(hash, this.key, this.devices) {
                return Poll::Ready(Ok(pin));
            }
        }
        this.go_on(context)
    }
}

impl<K: Key, V: Send + Sync + 'static, M> Request<'_, K, V, M>
where
    M: Future<Output = Result<Pinned<V>, Error>>,
{
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, context: &mut Context<'_>) -> Poll<Result<Pinned<V>, Error>> {
        if let Some(miss) = self.miss.take() {
            self.running = Some(Box::pin(miss));
        }
        match &mut self.running {
            Some(running) => running.as_mut().poll(context),
            // A hit that was polled again, and is none any more: its build is gone for good.
            None => Poll::Pending,
        }
    }
}
