//! The devices, found once.

use grainstore::DeviceId;
use grainstore_runtime::parts::Live;
use grainstore_runtime::{BackendError, Target, Toolchain};

use crate::builder::Settings;
use crate::device::{self, Device};
use crate::driver::Instance;
use crate::existing::ExistingDevice;
use crate::library;

/// The devices, which stay the same for the life of a process, or until the user gives another. Each
/// keeps the instance that it is of.
pub(crate) struct Found {
    pub(crate) devices: Vec<Device>,
}

impl Found {
    pub(crate) fn all(settings: &Settings) -> Result<Self, BackendError> {
        let entry = library::load(settings.library.as_deref())?;
        Ok(Self { devices: device::find(&Instance::new(&entry)?)? })
    }

    /// The application's own devices alone, numbered as they are given.
    pub(crate) fn of_application(
        given: &[ExistingDevice],
        live: &Live,
    ) -> Result<Self, BackendError> {
        let devices =
            given.iter().enumerate().map(|(index, given)| Device::existing(given, index, live));
        Ok(Self { devices: devices.collect::<Result<_, _>>()? })
    }

    pub(crate) fn device(&self, id: &DeviceId) -> Result<&Device, BackendError> {
        let device = self.devices.iter().find(|device| device.info.id == *id);
        device.ok_or_else(|| BackendError::no_device(id, self.devices.iter().map(|it| it.info.id)))
    }

    pub(crate) fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        let device = self.devices.iter().find(|device| device.target == *target);
        device.map(Device::toolchain).ok_or_else(|| BackendError::no_target(target))
    }
}
