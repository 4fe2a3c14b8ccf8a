//! The devices and kernels of several backends, as one.

mod builder;
mod drains;
mod ids;
mod kernel;
mod plans;
mod tasks;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use grainstore::{ContentId, DeviceId, Drain, Hooks, KernelKey};

pub use builder::RuntimeBuilder;
pub use drains::Drains;
pub use ids::IntoSpec;
pub use kernel::Kernel;
pub use plans::Plans;

use crate::backend_cache::{Ending, deadline, reset};
use crate::blocking::Blocking;
use crate::{AnyBackend, BackendCache, Device, KernelSpec, Outcome, RuntimeError};

/// Backends and stores plugged together.
///
/// A cheap handle; clones share everything. The last one to be dropped releases what is not pinned.
/// A program that ends by itself calls [`shutdown`](Self::shutdown) first.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    caches: Box<[BackendCache<AnyBackend>]>,
    /// The owner number of the first cache; the others follow. So a device's cache is found by a
    /// subtraction.
    first_owner: u64,
    hooks: Hooks,
    drain_bound: Duration,
    blocking: Blocking,
    ids: ids::Ids,
}

impl Runtime {
    /// Starts a runtime.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Every backend it was built with, whether its driver is here or not:
    /// [`devices`](BackendCache::devices) of each tells.
    #[must_use]
    pub fn backends(&self) -> &[BackendCache<AnyBackend>] {
        &self.inner.caches
    }

    /// The backend of this name, or of this family or a refinement of it: `opencl`, `CUDA`,
    /// `CUDA/PTX`. Case does not matter.
    #[must_use]
    pub fn find_backend(&self, name: &str) -> Option<&BackendCache<AnyBackend>> {
        let family = name.split('/').next().unwrap_or_default();
        let caches = &self.inner.caches;
        caches.iter().find(|cache| cache.name().eq_ignore_ascii_case(name)).or_else(|| {
            caches.iter().find(|cache| cache.family().name().eq_ignore_ascii_case(family))
        })
    }

    /// Handles of the devices of all backends that are here. What is missing is told by
    /// [`backends`](Self::backends), one by one.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        self.inner.caches.iter().flat_map(|cache| cache.devices().unwrap_or_default()).collect()
    }

    /// The handle of this device.
    ///
    /// # Errors
    /// [`RuntimeError::NoDevice`] where no backend has it; otherwise as
    /// [`BackendCache::device`].
    pub fn device(&self, id: &DeviceId) -> Result<Device, RuntimeError> {
        let mut last = RuntimeError::NoDevice { device: *id };
        for cache in self.inner.caches.iter().filter(|cache| cache.family() == id.family()) {
            match cache.device(id) {
                Ok(device) => return Ok(device),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The backend that this device belongs to.
    ///
    /// # Errors
    /// [`RuntimeError::ForeignDevice`] for another runtime's handle.
    #[inline]
    pub fn backend_of(&self, device: &Device) -> Result<&BackendCache<AnyBackend>, RuntimeError> {
        self.cache_of(device).ok_or_else(|| RuntimeError::ForeignDevice { device: device.id() })
    }

    #[inline]
    fn cache_of(&self, device: &Device) -> Option<&BackendCache<AnyBackend>> {
        let at = device.owner().wrapping_sub(self.inner.first_owner);
        self.inner.caches.get(usize::try_from(at).ok()?)
    }

    /// This kernel on this device: from memory, from a store, or built. Callers who ask at once
    /// share one build.
    ///
    /// # Errors
    /// [`RuntimeError::Backend`] with what the backend said, [`RuntimeError::DeviceDestroyed`] for a
    /// handle of an earlier life, [`RuntimeError::Busy`] where every place is taken.
    #[inline]
    pub fn kernel(&self, device: &Device, spec: &KernelSpec) -> Result<Kernel, RuntimeError> {
        let found = match self.cache_of(device) {
            Some(cache) => cache.at_place(device, spec),
            None => None,
        };
        match found {
            Some(kernel) => Ok(Kernel::new(kernel)),
            None => self.look_up(device, spec),
        }
    }

    /// The longer ways. They are the last thing that their caller does, and do all that is left to do,
    /// so that a hit keeps nothing for them.
    #[cold]
    #[inline(never)]
    fn look_up(&self, device: &Device, spec: &KernelSpec) -> Result<Kernel, RuntimeError> {
        let cache = self.backend_of(device)?;
        match cache.by_key(device, spec) {
            Some(kernel) => Ok(Kernel::new(kernel)),
            None => Ok(Kernel::new(cache.get_or_obtain(device, spec, &mut None)?)),
        }
    }

    /// The same, with where it came from and how long that took.
    ///
    /// # Errors
    /// As [`kernel`](Self::kernel).
    pub fn kernel_with_outcome(
        &self,
        device: &Device,
        spec: &KernelSpec,
    ) -> Result<(Kernel, Outcome), RuntimeError> {
        let (pinned, outcome) = self.backend_of(device)?.kernel_with_outcome(device, spec)?;
        Ok((Kernel::new(pinned), outcome))
    }

    /// The kernel that its owner knows by this id. The spec is made at the first request only, or
    /// again when its id was not asked for in a long time; equal ids on one device must mean equal
    /// specs.
    ///
    /// # Errors
    /// [`RuntimeError::Spec`] when no spec could be made; otherwise as [`kernel`](Self::kernel).
    pub fn kernel_by<S: IntoSpec>(
        &self,
        device: &Device,
        id: impl AsRef<[u8]>,
        spec: impl FnOnce() -> S,
    ) -> Result<Kernel, RuntimeError> {
        let cache = self.backend_of(device)?;
        cache.check_live(device)?;
        let id = ContentId::of(id.as_ref());
        let spec = match self.inner.ids.at_hand(device, &id) {
            Some(spec) => spec,
            None => {
                // Before any lock: a thread that held one may not be there.
                cache.check_home()?;
                self.inner.ids.spec(device, &id, spec)?
            }
        };
        Ok(Kernel::new(cache.kernel(device, &spec)?))
    }

    /// The key of this kernel on this device: what the stores know it by.
    ///
    /// # Errors
    /// When the device's target or toolchain can't be read.
    pub fn key<'s>(
        &self,
        device: &Device,
        spec: &'s KernelSpec,
    ) -> Result<&'s KernelKey, RuntimeError> {
        self.backend_of(device)?.key(device, spec)
    }

    /// Takes one kernel out of memory: see [`BackendCache::remove`].
    ///
    /// # Errors
    /// [`RuntimeError::DeviceDestroyed`] for a handle of an earlier life.
    pub fn remove(
        &self,
        device: &Device,
        spec: &KernelSpec,
    ) -> Result<Drain<KernelKey>, RuntimeError> {
        self.backend_of(device)?.remove(device, spec)
    }

    /// Takes every kernel of every backend out of memory, between two notifications that have the
    /// layers above drop what they made of them. The stores keep theirs.
    ///
    /// # Errors
    /// [`RuntimeError::Hook`] when a listener failed; everything is cleared all the same.
    pub fn clear(&self) -> Result<Drains, RuntimeError> {
        let clear_all = || self.inner.caches.iter().map(BackendCache::clear).collect();
        let cleared: Result<Vec<_>, RuntimeError> = self
            .inner
            .hooks
            .around_clear(|| Ok::<_, Infallible>(clear_all()))
            .map_err(RuntimeError::from)?;
        cleared.map(Drains)
    }

    /// Retires every handle, so that the next [`devices`](Self::devices) looks anew at what is
    /// there, and tells the layers above that each device is gone. The kernels themselves stay: a
    /// device that is still the same finds its own in memory.
    ///
    /// # Errors
    /// [`RuntimeError::Hook`] when a listener failed; all handles are retired all the same.
    pub fn reset_devices(&self) -> Result<(), RuntimeError> {
        reset(&self.inner.caches, &self.inner.hooks)
    }

    /// Destroys a device: see [`BackendCache::destroy_device`].
    ///
    /// # Errors
    /// [`RuntimeError::DeviceHeld`] while its kernels are pinned; call again until it succeeds.
    pub fn destroy_device(&self, device: &Device) -> Result<(), RuntimeError> {
        self.backend_of(device)?.destroy_device(device)
    }

    /// The same with a bound of its own.
    ///
    /// # Errors
    /// As [`destroy_device`](Self::destroy_device).
    pub fn destroy_device_within(
        &self,
        device: &Device,
        bound: Duration,
    ) -> Result<(), RuntimeError> {
        self.backend_of(device)?.destroy_device_within(device, bound)
    }

    /// Destroys a device also when some of its kernels are still pinned after the bound: see
    /// [`BackendCache::destroy_device_abandoning`].
    ///
    /// # Errors
    /// The first failure of a listener, a release or the driver.
    pub fn destroy_device_abandoning(
        &self,
        device: &Device,
        bound: Duration,
    ) -> Result<(), RuntimeError> {
        self.backend_of(device)?.destroy_device_abandoning(device, bound)
    }

    /// Says that the device is lost, and its driver's handles with it: its kernels are abandoned.
    ///
    /// # Errors
    /// The first failure of a listener or the backend.
    pub fn device_lost(&self, device: &Device) -> Result<(), RuntimeError> {
        self.backend_of(device)?.device_lost(device)
    }

    /// Ends the use of all backends: destroys their devices, waits for what is still held, and then
    /// touches no driver any more, so that the process may exit in any order. What did not end
    /// within the bound is abandoned. Called again, it says what is still running, if anything.
    ///
    /// # Errors
    /// [`RuntimeError::ShutdownIncomplete`] with the builds that were still running and the kernels
    /// that were still pinned. Otherwise the first failure of a listener, a release or a driver.
    pub fn shutdown(&self) -> Result<(), RuntimeError> {
        self.shutdown_within(self.inner.drain_bound)
    }

    /// The same with a bound of its own.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    pub fn shutdown_within(&self, bound: Duration) -> Result<(), RuntimeError> {
        let deadline = deadline(bound);
        let mut ending = Ending::default();
        let caches = &self.inner.caches;
        let firsts: Vec<_> =
            caches.iter().map(BackendCache::begin_shutdown).collect::<Result<_, _>>()?;
        if firsts.contains(&true) {
            ending.note(self.inner.hooks.notify_clear_all().map_err(RuntimeError::from));
        }
        for (cache, first) in caches.iter().zip(firsts) {
            cache.end_shutdown(first, deadline, &mut ending);
        }
        ending.into_result()
    }

    /// The hooks by which the layers above hear of teardowns.
    #[must_use]
    pub fn hooks(&self) -> &Hooks {
        &self.inner.hooks
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("backends", &self.inner.caches).finish_non_exhaustive()
    }
}
