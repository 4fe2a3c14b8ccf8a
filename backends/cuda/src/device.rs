//! The devices of the driver, numbered as it numbers them.

use std::sync::{Arc, Mutex, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_runtime::{BackendError, DeviceInfo};

use crate::context::Context;
use crate::driver::{Driver, RawDevice};
use crate::status::Failure;

/// A device that was found.
pub(crate) struct Device {
    pub(crate) info: DeviceInfo,
    pub(crate) raw: RawDevice,
    pub(crate) uuid: [u8; 16],
    /// Its compute capability, ten times.
    pub(crate) capability: u32,
    /// Its primary context, once it is needed.
    context: Mutex<Option<Arc<Context>>>,
}

/// All devices.
pub(crate) fn find(driver: &Arc<Driver>) -> Result<Vec<Device>, BackendError> {
    let devices = driver.devices()?.into_iter().enumerate();
    devices.map(|(index, raw)| Ok(describe(driver, raw, index as u32)?)).collect()
}

fn describe(driver: &Arc<Driver>, raw: RawDevice, index: u32) -> Result<Device, Failure> {
    Ok(Device {
        info: DeviceInfo {
            id: DeviceId::new(Family::CUDA, index),
            name: driver.device_name(raw)?,
            driver: format!("CUDA {}", driver.version()),
        },
        raw,
        uuid: driver.device_uuid(raw)?,
        capability: driver.capability(raw)?,
        context: Mutex::default(),
    })
}

impl Device {
    /// Its primary context, made if this is the first call that needs it.
    pub(crate) fn context(&self, driver: &Arc<Driver>) -> Result<Arc<Context>, Failure> {
        // Others who want the same device's context wait; they could do nothing without it.
        let mut slot = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = &*slot {
            return Ok(Arc::clone(context));
        }
        let context = Arc::new(Context::primary(driver, self.raw)?);
        *slot = Some(Arc::clone(&context));
        Ok(context)
    }

    /// What [`context`](Self::context) made; the next call of that makes another.
    pub(crate) fn take_context(&self) -> Option<Arc<Context>> {
        self.context.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
