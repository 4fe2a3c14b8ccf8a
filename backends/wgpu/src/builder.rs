//! How a [`WgpuBackend`] is given its devices.

use std::error::Error;
use std::fmt;

use grainstore_runtime::BackendError;
use wgpu::{Device, Queue};

use crate::backend::WgpuBackend;
use crate::context::{Held, Place};

/// Collects the devices of a [`WgpuBackend`]. Their numbers are in the order of these calls.
#[derive(Default)]
#[must_use]
pub struct WgpuBackendBuilder {
    places: Vec<Place>,
}

impl WgpuBackendBuilder {
    /// A device that the application has, with its queue. Both are handles: the backend's is one
    /// more, until the device is destroyed as far as the runtime is concerned.
    pub fn device(mut self, device: Device, queue: Queue) -> Self {
        let place = Place::new(self.next(), None);
        place.fill(Held { device, queue });
        self.places.push(place);
        self
    }

    /// A device that the application makes when it is first wanted, and again when it is wanted
    /// after it was destroyed or lost. It is made while others who want it wait, so the function
    /// must not call the backend.
    pub fn device_with<E>(
        mut self,
        make: impl Fn() -> Result<(Device, Queue), E> + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let make = move || {
            make().map_err(|error| BackendError::failed("the application's device", error.into()))
        };
        self.places.push(Place::new(self.next(), Some(Box::new(make))));
        self
    }

    /// The backend.
    #[must_use]
    pub fn build(self) -> WgpuBackend {
        WgpuBackend::with(self.places)
    }

    fn next(&self) -> u32 {
        self.places.len() as u32
    }
}

impl fmt::Debug for WgpuBackendBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WgpuBackendBuilder").field("devices", &self.places.len()).finish()
    }
}
