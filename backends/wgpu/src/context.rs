//! What a device's modules live in: the application's device with its queue, and how long this backend
//! holds them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_runtime::BackendError;
use wgpu::{Device, Queue};

use crate::device::Profile;

/// Makes a device, when one is wanted.
pub(crate) type Make = dyn Fn() -> Result<(Device, Queue), BackendError> + Send + Sync;

/// Hold on a device and its queue.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) device: Device,
    pub(crate) queue: Queue,
}

/// Where a device is, or was, or will be.
pub(crate) struct Place {
    index: u32,
    make: Option<Box<Make>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    /// Of the device that is held, or of the last one where another can be made.
    profile: Option<Profile>,
}

impl Place {
    /// An empty one, for the device of that number.
    pub(crate) fn new(index: u32, make: Option<Box<Make>>) -> Self {
        Self { index, make, state: Mutex::default() }
    }

    pub(crate) fn id(&self) -> DeviceId {
        DeviceId::new(Family::WGPU, self.index)
    }

    /// Puts a device there, for any that was there before.
    pub(crate) fn fill(&self, held: Held) {
        // Released after the lock: a device's end may take its time.
        let _before = {
            let mut state = self.lock();
            state.profile = Some(Profile::of(self.index, &held.device));
            state.held.replace(held)
        };
    }

    /// Takes the device away. What modules hold of it stays theirs.
    pub(crate) fn empty(&self) {
        // The application's own handles are its own to drop; ours is gone after the lock.
        let _held = {
            let mut state = self.lock();
            if self.make.is_none() {
                state.profile = None;
            }
            state.held.take()
        };
    }

    /// The device, made if it can be and is not there, and what is said of it.
    pub(crate) fn device(&self) -> Result<(Held, Profile), BackendError> {
        let mut state = self.lock();
        if let State { held: Some(held), profile: Some(profile) } = &*state {
            return Ok((held.clone(), profile.clone()));
        }
        let Some(make) = &self.make else { return Err(self.gone()) };
        let (device, queue) = make()?;
        let profile = Profile::of(self.index, &device);
        let held = Held { device, queue };
        *state = State { held: Some(held.clone()), profile: Some(profile.clone()) };
        Ok((held, profile))
    }

    /// What is said of the device; it is made where nothing is known yet.
    pub(crate) fn profile(&self) -> Result<Profile, BackendError> {
        let known = self.known();
        known.map_or_else(|| self.device().map(|(_, profile)| profile), Ok)
    }

    /// What is known of the device without making it.
    pub(crate) fn known(&self) -> Option<Profile> {
        self.lock().profile.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self) -> BackendError {
        let message = format!(
            "the device {} was given up; give another with `replace_device`, or a function that \
             makes one with the builder's `device_with`",
            self.id()
        );
        BackendError::NoDevice { message }
    }
}
