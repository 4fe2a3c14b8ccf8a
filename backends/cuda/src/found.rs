//! The driver with its devices, found once.

use std::sync::Arc;

use grainstore::DeviceId;
use grainstore_runtime::BackendError;

use crate::builder::Settings;
use crate::context::Context;
use crate::device::{self, Device};
use crate::driver::Driver;
use crate::module::RawHandle;

/// The driver and its devices, which stay the same for the life of a process.
pub(crate) struct Found {
    pub(crate) driver: Arc<Driver>,
    pub(crate) devices: Vec<Device>,
    /// The application's context, where there is one: it stands for the device's primary one.
    own: Option<Arc<Context>>,
}

impl Found {
    pub(crate) fn all(settings: &Settings) -> Result<Self, BackendError> {
        let driver = Driver::load(settings.library.as_deref())?;
        let devices = device::find(&driver)?;
        Ok(Self { driver, devices, own: None })
    }

    /// The device of the application's context alone, under the number that it has anyway.
    ///
    /// # Safety
    /// As for [`Context::of_application`].
    pub(crate) unsafe fn of_application(
        settings: &Settings,
        context: RawHandle,
    ) -> Result<Self, BackendError> {
        let Self { driver, mut devices, .. } = Self::all(settings)?;
        // SAFETY: the caller's word.
        let context = unsafe { Context::of_application(&driver, context) }?;
        devices.retain(|device| device.raw == context.device());
        Ok(Self { driver, devices, own: Some(Arc::new(context)) })
    }

    pub(crate) fn device(&self, id: &DeviceId) -> Result<&Device, BackendError> {
        let device = self.devices.iter().find(|device| device.info.id == *id);
        device.ok_or_else(|| BackendError::no_device(id, self.devices.iter().map(|it| it.info.id)))
    }

    /// Where a device's modules are loaded.
    pub(crate) fn context(&self, device: &Device) -> Result<Arc<Context>, BackendError> {
        match &self.own {
            Some(context) => Ok(Arc::clone(context)),
            None => Ok(device.context(&self.driver)?),
        }
    }
}
