//! The same for tasks: what may block a thread there is awaited here.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use grainstore::ContentId;

use super::{IntoSpec, Kernel, Runtime};
use crate::{BackendCache, Device, KernelSpec, RuntimeError};

impl Runtime {
    /// As [`kernel`](Self::kernel), for a task: see
    /// [`BackendCache::kernel_async`](crate::BackendCache::kernel_async). A hit is all that the first
    /// poll does.
    ///
    /// # Errors
    /// As there, and [`RuntimeError::NotRun`].
    pub fn kernel_async<'a>(
        &'a self,
        device: &'a Device,
        spec: &'a KernelSpec,
    ) -> impl Future<Output = Result<Kernel, RuntimeError>> + Send + 'a {
        let mut asked = self.backend_of(device).map(|cache| cache.kernel_async(device, spec));
        poll_fn(move |context| match &mut asked {
            Ok(asked) => Pin::new(asked).poll(context).map_ok(Kernel::new),
            Err(error) => Poll::Ready(Err(error.clone())),
        })
    }

    /// As [`kernel_by`](Self::kernel_by), for a task. The spec is made within a poll.
    ///
    /// # Errors
    /// As there, and [`RuntimeError::NotRun`].
    pub fn kernel_by_async<'a, S: IntoSpec>(
        &'a self,
        device: &'a Device,
        id: impl AsRef<[u8]>,
        spec: impl FnOnce() -> S + Send + 'a,
    ) -> impl Future<Output = Result<Kernel, RuntimeError>> + Send {
        let id = ContentId::of(id.as_ref());
        let (mut make, mut making, mut asked) = (Some(spec), None, None);
        poll_fn(move |context| {
            let cache = self.backend_of(device)?;
            if let Some(make) = make.take() {
                cache.check_live(device)?;
                match self.inner.ids.at_hand(device, &id) {
                    Some(spec) => match cache.in_memory(device, &spec) {
                        Some(kernel) => return Poll::Ready(Ok(Kernel::new(kernel))),
                        None => asked = Some(cache.fetch(device, &spec)),
                    },
                    None => {
                        // Before any lock: a thread that held one may not be there.
                        cache.check_home()?;
                        making = Some(self.inner.ids.spec_async(device, id, make));
                    }
                }
            }
            if let Some(made) = &mut making {
                let spec = ready!(made.as_mut().poll(context))?;
                making = None;
                asked = Some(cache.fetch(device, &spec));
            }
            match &mut asked {
                Some(asked) => asked.as_mut().poll(context).map_ok(Kernel::new),
                // Polled again after its end.
                None => Poll::Pending,
            }
        })
    }

    /// As [`destroy_device`](Self::destroy_device), for a task. Once it was polled it goes on, also
    /// when this future is dropped.
    ///
    /// # Errors
    /// As there, and [`RuntimeError::NotRun`].
    pub fn destroy_device_async(
        &self,
        device: &Device,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send + use<> {
        let destroyed = self.backend_of(device).map(|cache| cache.destroy_device_async(device));
        async move { destroyed?.await }
    }

    /// As [`shutdown_within`](Self::shutdown_within), for a task. Once it was polled it goes on, also
    /// when this future is dropped.
    ///
    /// # Errors
    /// As there, and [`RuntimeError::NotRun`].
    pub fn shutdown_async(
        &self,
        bound: Duration,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send + use<> {
        let runtime = self.clone();
        async move {
            runtime.inner.caches.iter().try_for_each(BackendCache::check_home)?;
            let blocking = runtime.inner.blocking.clone();
            blocking.offload(move || runtime.shutdown_within(bound)).await
        }
    }
}
