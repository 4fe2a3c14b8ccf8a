//! The [`Backend`] itself: ties the application's devices, their caches and modules together.

use std::fmt;
use std::sync::Arc;

use grainstore::{DeviceId, Family};
use grainstore_runtime::parts::Live;
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};
use wgpu::{Device, Queue};

use crate::builder::WgpuBackendBuilder;
use crate::context::{Held, Place};
use crate::module::WgpuModule;
use crate::{artifact, cache, compile};

/// The application's wgpu devices, as a backend. Cheap to clone, and all clones are one.
#[derive(Clone)]
pub struct WgpuBackend {
    /// By the device's number.
    places: Arc<[Place]>,
    live: Live,
}

impl WgpuBackend {
    /// Starts a backend, which has no devices but those that it is given.
    pub fn builder() -> WgpuBackendBuilder {
        WgpuBackendBuilder::default()
    }

    pub(crate) fn with(places: Vec<Place>) -> Self {
        Self { places: places.into(), live: Live::default() }
    }

    /// Gives a device in the place of one that was destroyed or lost. A runtime that has kernels of
    /// the one before is told first, with `destroy_device` or `device_lost`, or it would go on to
    /// hand them out.
    ///
    /// # Errors
    /// [`BackendError::NoDevice`] for an index that the builder did not give out.
    pub fn replace_device(
        &self,
        id: &DeviceId,
        device: Device,
        queue: Queue,
    ) -> Result<(), BackendError> {
        self.place(id)?.fill(Held { device, queue });
        Ok(())
    }

    /// How many pipelines there are in modules of this backend. The devices are the application's,
    /// and wgpu itself counts those.
    #[must_use]
    pub fn live_handles(&self) -> usize {
        self.live.count()
    }

    fn place(&self, id: &DeviceId) -> Result<&Place, BackendError> {
        let place = self.places.iter().find(|place| place.id() == *id);
        place.ok_or_else(|| BackendError::no_device(id, self.places.iter().map(Place::id)))
    }

    fn module(
        &self,
        held: Held,
        spec: &KernelSpec,
        cache: Option<&wgpu::PipelineCache>,
    ) -> Result<WgpuModule, BackendError> {
        let pipelines = compile::compile(&held.device, spec, cache)?;
        Ok(WgpuModule::new(pipelines, held, &self.live))
    }
}

impl fmt::Debug for WgpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WgpuBackend")
            .field("devices", &self.places.len())
            .field("live", &self.live_handles())
            .finish()
    }
}

impl Backend for WgpuBackend {
    type Module = WgpuModule;

    fn name(&self) -> &str {
        "wgpu"
    }

    fn family(&self) -> Family {
        Family::WGPU
    }

    fn languages(&self) -> &[Language] {
        &[Language::Wgsl]
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        if self.places.is_empty() {
            let hint = "give it one with `WgpuBackend::builder().device(device, queue)`";
            return Err(BackendError::missing("a wgpu device", hint));
        }
        let (mut devices, mut first) = (Vec::new(), None);
        for place in &*self.places {
            match place.profile() {
                Ok(profile) => devices.push(profile.info),
                // One that was given up is no failure; one that can't be made hides no other.
                Err(BackendError::NoDevice { .. }) => {}
                Err(error) => first = first.or(Some(error)),
            }
        }
        match first {
            Some(error) if devices.is_empty() => Err(error),
            _ => Ok(devices),
        }
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        Ok(self.place(device)?.profile()?.target)
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        let mut known = self.places.iter().filter_map(Place::known);
        known
            .find(|profile| profile.target == *target)
            .map(|profile| profile.toolchain)
            .ok_or_else(|| BackendError::no_target(target))
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(WgpuModule, Option<Artifact>), BackendError> {
        let (held, profile) = self.place(device)?.device()?;
        let cache = cache::empty(&held.device);
        let module = self.module(held, spec, cache.as_ref())?;
        let artifact = cache
            .and_then(|cache| cache::data(&cache))
            .map(|data| artifact::pack(data, &profile.seal()));
        Ok((module, artifact))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<WgpuModule, BackendError> {
        let (held, profile) = self.place(device)?.device()?;
        let data = artifact::unpack(artifact, &profile.seal())?;
        // SAFETY: The seal says that these bytes are what `build` took from the cache of a device
        // of this target and toolchain.
        let cache = unsafe { cache::filled(&held.device, data) }?;
        self.module(held, spec, Some(&cache))
    }

    fn unload(&self, module: WgpuModule) -> Result<(), BackendError> {
        // wgpu keeps a pipeline until the work that uses it is done.
        drop(module);
        Ok(())
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        if let Ok(place) = self.place(device) {
            place.empty();
        }
        Ok(())
    }
}
