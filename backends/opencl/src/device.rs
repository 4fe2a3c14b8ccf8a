//! The devices of all drivers, numbered, and what the key says of them.

use std::sync::{Arc, Mutex, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_runtime::{BackendError, DeviceInfo, Target, Toolchain};
use opencl_sys::{
    CL_DEVICE_ADDRESS_BITS, CL_DEVICE_AVAILABLE, CL_DEVICE_ENDIAN_LITTLE, CL_DEVICE_EXTENSIONS,
    CL_DEVICE_NAME, CL_DEVICE_VENDOR_ID, CL_DEVICE_VERSION, CL_DRIVER_VERSION, CL_PLATFORM_NAME,
    CL_PLATFORM_VERSION, cl_platform_id,
};

use crate::driver::Driver;
use crate::handle::DeviceHandle;
use crate::status::Failure;
use crate::toolchain;

/// A device that was found.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) info: DeviceInfo,
    pub(crate) handle: DeviceHandle,
    /// Equal for devices of one platform.
    pub(crate) platform: usize,
    pub(crate) target: Target,
    /// Without the variables, which may change.
    versions: String,
    /// What its binaries are sealed for, once that was asked for.
    seal: Mutex<Option<Arc<str>>>,
}

impl Device {
    /// Who compiles for it, with the variables as they are now; and from now on its binaries are
    /// sealed for that, as their keys are.
    pub(crate) fn toolchain(&self) -> Toolchain {
        let toolchain = toolchain::of(&self.versions);
        self.set_seal(toolchain.as_str());
        toolchain
    }

    /// What its binaries are sealed for.
    pub(crate) fn seal(&self) -> Arc<str> {
        let known = self.seal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.unwrap_or_else(|| self.set_seal(self.toolchain().as_str()))
    }

    fn set_seal(&self, toolchain: &str) -> Arc<str> {
        let seal: Arc<str> = format!("{} | {toolchain}", self.target.as_str()).into();
        let mut slot = self.seal.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(Arc::clone(&seal));
        seal
    }
}

/// All devices that can be used. A driver that fails hides its own devices and no others.
pub(crate) fn find(driver: &Driver) -> Result<Vec<Device>, BackendError> {
    let mut platforms = Vec::new();
    for platform in driver.platforms()? {
        if let Ok(names) = Platform::of(driver, platform) {
            platforms.push(names);
        }
    }
    // The loader lists drivers in the order of a folder, which is any order.
    platforms.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));

    let mut devices = Vec::new();
    let mut first_failure = None;
    for (number, platform) in platforms.iter().enumerate() {
        let found = driver.devices(platform.id).unwrap_or_else(|failure| {
            first_failure.get_or_insert(failure);
            Vec::new()
        });
        for handle in found {
            match describe(driver, platform, number, handle, devices.len()) {
                Ok(device) => devices.extend(device),
                Err(failure) => {
                    first_failure.get_or_insert(failure);
                }
            }
        }
    }
    match first_failure {
        Some(failure) if devices.is_empty() => Err(failure.into()),
        _ => Ok(devices),
    }
}

/// The devices of a context, numbered in its order. They are of one platform.
pub(crate) fn describe_all(
    driver: &Driver,
    handles: &[DeviceHandle],
) -> Result<Vec<Device>, BackendError> {
    let mut devices = Vec::new();
    for &handle in handles {
        let platform = Platform::of(driver, driver.platform_of(handle)?)?;
        devices.extend(describe(driver, &platform, 0, handle, devices.len())?);
    }
    Ok(devices)
}

struct Platform {
    id: cl_platform_id,
    name: String,
    version: String,
}

impl Platform {
    fn of(driver: &Driver, id: cl_platform_id) -> Result<Self, Failure> {
        Ok(Self {
            id,
            name: driver.platform_text(id, CL_PLATFORM_NAME)?,
            version: driver.platform_text(id, CL_PLATFORM_VERSION)?,
        })
    }
}

/// The device as it will be known, or none if it is not available.
fn describe(
    driver: &Driver,
    platform: &Platform,
    number: usize,
    handle: DeviceHandle,
    index: usize,
) -> Result<Option<Device>, Failure> {
    if driver.device_number(handle, CL_DEVICE_AVAILABLE)? == 0 {
        return Ok(None);
    }
    let name = driver.device_text(handle, CL_DEVICE_NAME)?;
    let version = driver.device_text(handle, CL_DEVICE_VERSION)?;
    let driver_version = driver.device_text(handle, CL_DRIVER_VERSION)?;
    let vendor = driver.device_number(handle, CL_DEVICE_VENDOR_ID)?;
    let bits = driver.device_number(handle, CL_DEVICE_ADDRESS_BITS)?;
    let little = driver.device_number(handle, CL_DEVICE_ENDIAN_LITTLE)? != 0;
    let order = if little { "little" } else { "big" };
    let extensions = driver.device_text(handle, CL_DEVICE_EXTENSIONS)?;
    let Platform { name: platform_name, version: platform_version, .. } = platform;
    Ok(Some(Device {
        target: Target::new(format!(
            "{platform_name}; {name}; vendor {vendor:#06x}; {version}; {bits} bits, {order} endian"
        )),
        versions: toolchain::versions(
            platform_name,
            platform_version,
            &driver_version,
            &extensions,
        ),
        info: DeviceInfo {
            id: DeviceId::new(Family::OPENCL, index as u32),
            name,
            driver: format!("{platform_name} {driver_version}"),
        },
        handle,
        platform: number,
        seal: Mutex::new(None),
    }))
}
