//! The library with its devices, found once.

use std::sync::Arc;

use grainstore::DeviceId;
use grainstore_runtime::{BackendError, Target, Toolchain};

use crate::builder::Settings;
use crate::device::{self, Device};
use crate::driver::Driver;
use crate::handle::DeviceHandle;

/// The library and its devices, which stay the same for the life of a process.
pub(crate) struct Found {
    pub(crate) driver: Arc<Driver>,
    pub(crate) devices: Vec<Device>,
}

impl Found {
    pub(crate) fn all(settings: &Settings) -> Result<Self, BackendError> {
        let driver = Driver::load(settings.library.as_deref())?;
        let devices = device::find(&driver)?;
        Ok(Self { driver, devices })
    }

    /// The devices of the application's context alone.
    pub(crate) fn of_application(
        driver: Arc<Driver>,
        devices: &[DeviceHandle],
    ) -> Result<Self, BackendError> {
        let devices = device::describe_all(&driver, devices)?;
        Ok(Self { driver, devices })
    }

    pub(crate) fn device(&self, id: &DeviceId) -> Result<&Device, BackendError> {
        let device = self.devices.iter().find(|device| device.info.id == *id);
        device.ok_or_else(|| BackendError::no_device(id, self.ids()))
    }

    /// All devices' identities, in their order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = DeviceId> {
        self.devices.iter().map(|device| device.info.id)
    }

    pub(crate) fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        // All of them are asked, since each keeps what its binaries are sealed for.
        let alike = self.devices.iter().filter(|device| device.target == *target);
        let toolchain = alike.map(Device::toolchain).reduce(|first, _| first);
        toolchain.ok_or_else(|| BackendError::no_target(target))
    }
}
