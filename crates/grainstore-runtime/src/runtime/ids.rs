//! Kernels by their owner's id: the spec behind an id is made once, not per call.

use std::error::Error;
use std::pin;
use std::sync::Arc;

use grainstore::{Cache, ContentId, Hooks, Ownership, Pinned, Registration};

use crate::{Device, KernelSpec, RuntimeError};

/// How many ids are remembered. One that was forgotten costs a call of its generator, no build.
const REMEMBERED: usize = 4096;

/// What a generator may give back: a [`KernelSpec`], or a `Result` of one.
pub trait IntoSpec {
    /// The spec, or why there is none.
    ///
    /// # Errors
    /// The generator's own.
    fn into_spec(self) -> Result<KernelSpec, Box<dyn Error + Send + Sync>>;
}

impl IntoSpec for KernelSpec {
    fn into_spec(self) -> Result<KernelSpec, Box<dyn Error + Send + Sync>> {
        Ok(self)
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> IntoSpec for Result<KernelSpec, E> {
    fn into_spec(self) -> Result<KernelSpec, Box<dyn Error + Send + Sync>> {
        self.map_err(Into::into)
    }
}

/// The specs by device and id. A generator may look at its device, so an id is one device's, and is
/// forgotten with that life of it, and with a clear.
pub(super) struct Ids {
    specs: Cache<ContentId, KernelSpec>,
    _registration: Registration,
}

impl Ids {
    pub(super) fn new(hooks: &Hooks) -> Result<Self, RuntimeError> {
        let specs = Cache::builder()
            .name("specs by id")
            .capacity(REMEMBERED)
            .ownership(Ownership::Borrows)
            .build()
            .map_err(RuntimeError::setup)?;
        let registration = specs.listen(hooks);
        Ok(Self { specs, _registration: registration })
    }

    /// The spec of this id, made by the first who asks.
    pub(super) fn spec<S: IntoSpec>(
        &self,
        device: &Device,
        id: &ContentId,
        make: impl FnOnce() -> S,
    ) -> Made {
        let build = || make().into_spec().map_err(as_error);
        Ok(self.specs.on(device.identity()).get_or_build(id, build)?)
    }

    /// The spec of this id, if it is at hand. Takes no lock, so that a forked child may ask, too.
    pub(super) fn at_hand(&self, device: &Device, id: &ContentId) -> Option<Pinned<KernelSpec>> {
        self.specs.on(device.identity()).try_get(id)
    }

    /// As [`spec`](Self::spec), for a task. The generator runs within a poll.
    pub(super) fn spec_async<'a, S: IntoSpec>(
        &self,
        device: &Device,
        id: ContentId,
        make: impl FnOnce() -> S + Send + 'a,
    ) -> pin::Pin<Box<dyn Future<Output = Made> + Send + 'a>> {
        let (specs, device) = (self.specs.clone(), device.id());
        let made = async { make().into_spec().map_err(as_error) };
        Box::pin(async move { Ok(specs.on(&device).get_or_build_async(&id, made).await?) })
    }
}

/// What comes of making a spec.
type Made = Result<Pinned<KernelSpec>, RuntimeError>;

/// A generator that asks the runtime for another kernel hands on the runtime's own error as it is.
fn as_error(error: Box<dyn Error + Send + Sync>) -> RuntimeError {
    match error.downcast::<RuntimeError>() {
        Ok(own) => *own,
        Err(error) => RuntimeError::Spec(Arc::from(error)),
    }
}
