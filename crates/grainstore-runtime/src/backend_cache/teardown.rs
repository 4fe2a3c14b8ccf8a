//! The order of a teardown, once for all backends.
//!
//! Out of the table, so that nobody gets a new kernel; notify, so that the layers above let go; wait
//! for what is still held, within a bound; then, and only then, the context. Whatever fails on the
//! way, the rest is done, and the first failure is returned at the end.

use std::time::{Duration, Instant};

use grainstore::{DeviceId, Drain, KernelKey};

use super::BackendCache;
use crate::activity::Gate;
use crate::{Backend, Device, RuntimeError};

/// What to do with modules that are still in use when the bound is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// Leave the device standing, and say who holds it.
    Report,
    /// Give them up: they are never released, and keep alive what they need.
    Abandon,
    /// Give up all of them, and at once: their driver's handles are gone.
    Lost,
}

impl<B: Backend> BackendCache<B> {
    /// Destroys a device: its kernels are released, and then its context. The next
    /// [`devices`](Self::devices) may make it anew, as another life.
    ///
    /// Called for a device that was destroyed already, it does nothing.
    ///
    /// # Errors
    /// [`RuntimeError::DeviceHeld`] when kernels are still pinned after the bound: the device is not
    /// destroyed under them, but gives out no kernels any more; call again until it succeeds.
    /// Otherwise the first failure of a listener, a release or the driver; the device is destroyed
    /// all the same.
    pub fn destroy_device(&self, device: &Device) -> Result<(), RuntimeError> {
        self.destroy_device_within(device, self.inner.settings.drain_bound)
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
        self.tear_down(device, bound, Held::Report)
    }

    /// Destroys a device also when some of its kernels are still pinned after the bound. These are
    /// abandoned: their pins stay good, they keep their context alive, and they are never released.
    ///
    /// # Errors
    /// The first failure of a listener, a release or the driver.
    pub fn destroy_device_abandoning(
        &self,
        device: &Device,
        bound: Duration,
    ) -> Result<(), RuntimeError> {
        self.tear_down(device, bound, Held::Abandon)
    }

    /// Says that the device is lost, and its driver's handles with it: its kernels are abandoned,
    /// not released, without waiting for anybody.
    ///
    /// # Errors
    /// The first failure of a listener or the backend.
    pub fn device_lost(&self, device: &Device) -> Result<(), RuntimeError> {
        self.tear_down(device, self.inner.settings.drain_bound, Held::Lost)
    }

    /// Ends an earlier life of a device that is about to be opened again, if nothing holds it.
    pub(super) fn end_if_free(&self, device: &Device) -> Result<(), RuntimeError> {
        self.tear_down(device, Duration::ZERO, Held::Report)
    }

    pub(super) fn tear_down(
        &self,
        device: &Device,
        bound: Duration,
        held: Held,
    ) -> Result<(), RuntimeError> {
        self.check_owner(device)?;
        let deadline = deadline(bound);
        let door = &self.inner.door;
        door.home.check()?;
        let Some(mut teardown) = self.inner.table.tear_down(device, deadline)? else {
            return Ok(());
        };
        let id = device.id();
        let mut first = First::default();

        if held == Held::Lost {
            // Before anybody is told and lets go of a pin, which would release a module.
            self.give_up(device);
        }
        if !teardown.told() {
            match self.hooks().notify_device_destroy(&id) {
                Ok(()) => teardown.set_told(),
                Err(error) => first.keep(error.into()),
            }
        }
        let drain = self.cache.evict_device(&id);
        let whole = held != Held::Lost && drain.wait_timeout(left(deadline));
        if !whole && held == Held::Report {
            let kernels = names(&drain);
            return Err(RuntimeError::DeviceHeld { device: id, kernels });
        }
        if let Some(error) = drain.errors().into_iter().next() {
            first.keep(RuntimeError::Release(error));
        }
        if !whole {
            drain.abandon();
        }
        first.note(self.release_context(&id, whole));
        teardown.finish();
        first.into_result()
    }

    fn release_context(&self, id: &DeviceId, whole: bool) -> Result<(), RuntimeError> {
        let door = &self.inner.door;
        let _inside = door.enter(Gate::Leaving, || format!("the destruction of {id}"))?;
        let released =
            if whole { door.backend.destroy_device(id) } else { door.backend.forget_device(id) };
        released.map_err(|error| door.error(None, error))
    }
}

/// The kernels that keep a drain from its end.
pub(super) fn names(drain: &Drain<KernelKey>) -> Vec<String> {
    let mut names: Vec<_> = drain.pending_keys().iter().map(|key| key.name().to_owned()).collect();
    names.sort();
    names
}

/// The instant at which a bound is over. One that is beyond all clocks is a day, and asked again.
pub(crate) fn deadline(bound: Duration) -> Instant {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let now = Instant::now();
    now.checked_add(bound).unwrap_or(now + DAY)
}

pub(super) fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// The first failure of several steps that are all done.
#[derive(Default)]
pub(super) struct First(Option<RuntimeError>);

impl First {
    pub(super) fn keep(&mut self, error: RuntimeError) {
        self.0.get_or_insert(error);
    }

    pub(super) fn note(&mut self, result: Result<(), RuntimeError>) {
        if let Err(error) = result {
            self.keep(error);
        }
    }

    pub(super) fn into_result(self) -> Result<(), RuntimeError> {
        self.0.map_or(Ok(()), Err)
    }
}
