//! The handles of a backend's devices, and what is read of a device once for each.

use std::sync::Arc;

use grainstore::DeviceId;

use super::BackendCache;
use crate::activity::Gate;
use crate::profile::Profile;
use crate::table::Opened;
use crate::{Backend, Device, DeviceInfo, RuntimeError, Target, Toolchain};

impl<B: Backend> BackendCache<B> {
    /// Handles of the devices that are there now. A device that was there before has the handle it
    /// had; one that was destroyed or reset meanwhile has a new one. Devices whose teardown is not
    /// finished are left out.
    ///
    /// # Errors
    /// What the backend says, [`BackendError::Missing`](crate::BackendError::Missing) above all.
    pub fn devices(&self) -> Result<Vec<Device>, RuntimeError> {
        let mut devices = Vec::new();
        for info in self.enumerate()?.iter() {
            match self.open(info) {
                Ok(device) => devices.push(device),
                Err(RuntimeError::ShutDown) => return Err(RuntimeError::ShutDown),
                // Still leaving; whoever wants this very device is told by `device`.
                Err(_) => {}
            }
        }
        Ok(devices)
    }

    /// The handle of this device.
    ///
    /// # Errors
    /// [`RuntimeError::NoDevice`]; [`RuntimeError::DeviceHeld`] while its last life is not over.
    pub fn device(&self, id: &DeviceId) -> Result<Device, RuntimeError> {
        let infos = self.enumerate()?;
        match infos.iter().find(|info| info.id == *id) {
            Some(info) => self.open(info),
            None => Err(RuntimeError::NoDevice { device: *id }),
        }
    }

    /// What code is made for on this device.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn target<'d>(&self, device: &'d Device) -> Result<&'d Target, RuntimeError> {
        Ok(self.profile(device)?.target())
    }

    /// Who makes code for this device.
    ///
    /// # Errors
    /// [`BackendError::Missing`](crate::BackendError::Missing) where there is no compiler.
    pub fn toolchain<'d>(&self, device: &'d Device) -> Result<&'d Toolchain, RuntimeError> {
        Ok(self.profile(device)?.toolchain())
    }

    /// Read at the first use in each generation, so that a driver that was replaced meanwhile is
    /// noticed then.
    pub(super) fn profile<'d>(&self, device: &'d Device) -> Result<&'d Arc<Profile>, RuntimeError> {
        self.check_owner(device)?;
        if let Some(profile) = device.profile() {
            return Ok(profile);
        }
        let door = &self.inner.door;
        let _inside =
            door.enter(Gate::Open, || format!("reading the target of {}", device.id()))?;
        self.check_live(device)?;
        let target = door.backend.target(&device.id()).map_err(|e| door.error(None, e))?;
        let toolchain = door.backend.toolchain(&target).map_err(|e| door.error(None, e))?;
        Ok(device.set_profile(Profile::of(&door.name, target, toolchain)))
    }

    fn enumerate(&self) -> Result<Arc<[DeviceInfo]>, RuntimeError> {
        let door = &self.inner.door;
        let _inside = door.enter(Gate::Open, || format!("enumerating devices of {}", door.name))?;
        if let Some(listed) = self.inner.table.listed() {
            return Ok(listed);
        }
        let infos = door.backend.devices().map_err(|error| door.error(None, error))?;
        Ok(self.inner.table.list(infos))
    }

    /// A handle of this device. An earlier life of it that is not over is ended first, if nothing
    /// holds it any more.
    fn open(&self, info: &DeviceInfo) -> Result<Device, RuntimeError> {
        let table = &self.inner.table;
        let ended = match table.open(info)? {
            Opened::Handle(device) => return Ok(device),
            Opened::Leaving(earlier) => self.end_if_free(&earlier),
        };
        match table.open(info)? {
            Opened::Handle(device) => Ok(device),
            Opened::Leaving(_) => ended.and(Err(RuntimeError::TeardownRunning { device: info.id })),
        }
    }
}
