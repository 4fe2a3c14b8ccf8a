//! Which context a device's modules live in, and how long this backend holds it.

use std::sync::{Arc, Mutex, PoisonError};

use grainstore::DeviceId;

use crate::context::{Context, Place};
use crate::device::Device;
use crate::driver::Driver;
use crate::handle::DeviceHandle;
use crate::status::Failure;

/// Who shares a context.
#[derive(Debug)]
pub(crate) enum Sharing {
    /// Nobody: each device has its own.
    Nothing,
    /// The devices of a platform.
    Platform,
    /// All devices there are: they were found in this context of the application's.
    All(Arc<Context>),
}

/// The contexts that are in use.
#[derive(Debug)]
pub(crate) struct Contexts {
    sharing: Sharing,
    /// At most one for each device.
    held: Mutex<Vec<Held>>,
}

#[derive(Debug)]
struct Held {
    device: DeviceId,
    platform: usize,
    context: Arc<Context>,
    /// Whether another device may come to share it: not once one of its devices was lost.
    sound: bool,
}

impl Contexts {
    pub(crate) fn new(sharing: Sharing) -> Self {
        Self { sharing, held: Mutex::default() }
    }

    /// The place of this device, which is one of `all`. Its context is made if it is not there.
    pub(crate) fn place(
        &self,
        driver: &Arc<Driver>,
        all: &[Device],
        device: &Device,
    ) -> Result<Place, Failure> {
        let context = match &self.sharing {
            Sharing::All(context) => Arc::clone(context),
            Sharing::Nothing => self.hold(device, |_| Context::new(driver, &[device.handle]))?,
            Sharing::Platform => self.hold(device, |device| {
                let neighbours: Vec<DeviceHandle> = all
                    .iter()
                    .filter(|other| other.platform == device.platform)
                    .map(|other| other.handle)
                    .collect();
                Context::new(driver, &neighbours)
            })?,
        };
        Ok(Place { context, device: device.handle })
    }

    /// What this device holds, or can share, or else a new one.
    fn hold(
        &self,
        device: &Device,
        make: impl FnOnce(&Device) -> Result<Context, Failure>,
    ) -> Result<Arc<Context>, Failure> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = held.iter().find(|held| held.device == device.info.id) {
            return Ok(Arc::clone(&own.context));
        }
        let shared = match self.sharing {
            Sharing::Platform => {
                held.iter().find(|held| held.sound && held.platform == device.platform)
            }
            _ => None,
        };
        let context = match shared {
            Some(shared) => Arc::clone(&shared.context),
            None => Arc::new(make(device)?),
        };
        held.push(Held {
            device: device.info.id,
            platform: device.platform,
            context: Arc::clone(&context),
            sound: true,
        });
        Ok(context)
    }

    /// Ends a device's hold. Where nobody else holds the context, it is released; where a module
    /// still uses it, the last one does that.
    pub(crate) fn release(&self, device: &DeviceId) -> Result<(), Failure> {
        match self.take(device).and_then(Arc::into_inner) {
            Some(context) => context.release(),
            None => Ok(()),
        }
    }

    /// The same for a device that is lost, and nobody is to share its context from now on.
    pub(crate) fn forget(&self, device: &DeviceId) -> Result<(), Failure> {
        if let Some(lost) = self.take(device) {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            for other in held.iter_mut().filter(|held| Arc::ptr_eq(&held.context, &lost)) {
                other.sound = false;
            }
            drop(held);
            if let Some(context) = Arc::into_inner(lost) {
                return context.release();
            }
        }
        Ok(())
    }

    fn take(&self, device: &DeviceId) -> Option<Arc<Context>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let at = held.iter().position(|held| held.device == *device)?;
        Some(held.swap_remove(at).context)
    }
}
