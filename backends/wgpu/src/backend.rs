//! The [`Backend`] itself: ties the application's devices, their caches and modules together.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain,
};
use wgpu::{Device, Queue};

use crate::device::{Held, Profile};
use crate::live::Live;
use crate::module::WgpuModule;
use crate::{cache, compile};

/// The artifact's member.
const ARTIFACT: &str = "pipeline-cache.bin";

/// Makes a device, when one is wanted.
type Make = dyn Fn() -> Result<(Device, Queue), BackendError> + Send + Sync;

/// The application's wgpu devices, as a backend. Cheap to clone, and all clones are one.
#[derive(Clone)]
pub struct WgpuBackend {
    /// By the device's number.
    places: Arc<[Place]>,
    live: Live,
}

/// Where a device is, or was, or will be.
struct Place {
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

impl WgpuBackend {
    /// Starts a backend, which has no devices but those that it is given.
    pub fn builder() -> WgpuBackendBuilder {
        WgpuBackendBuilder { places: Vec::new() }
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
        let place = self.place(id)?;
        // Released after the lock: a device's end may take its time.
        let _before = {
            let mut state = place.lock();
            state.profile = Some(Profile::of(place.index, &device));
            state.held.replace(Held { device, queue })
        };
        Ok(())
    }

    /// How many pipelines there are in modules of this backend. The devices are the application's,
    /// and wgpu itself counts those.
    #[must_use]
    pub fn live_handles(&self) -> usize {
        self.live.count()
    }

    fn place(&self, id: &DeviceId) -> Result<&Place, BackendError> {
        let place = if id.family() == Family::WGPU {
            self.places.iter().find(|place| place.index == id.index())
        } else {
            None
        };
        place.ok_or_else(|| {
            let there: Vec<_> = self.places.iter().map(|place| place.id().to_string()).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            BackendError::NoDevice {
                message: format!("there is no device {id}; there are: {there}"),
            }
        })
    }

    /// The device of that number, made if it can be and is not there, and what is said of it.
    fn device(&self, id: &DeviceId) -> Result<(Held, Profile), BackendError> {
        let place = self.place(id)?;
        let mut state = place.lock();
        if let State { held: Some(held), profile: Some(profile) } = &*state {
            return Ok((held.clone(), profile.clone()));
        }
        let Some(make) = &place.make else { return Err(place.gone()) };
        let (device, queue) = make()?;
        let profile = Profile::of(place.index, &device);
        let held = Held { device, queue };
        *state = State { held: Some(held.clone()), profile: Some(profile.clone()) };
        Ok((held, profile))
    }

    fn profile(&self, id: &DeviceId) -> Result<Profile, BackendError> {
        let known = self.place(id)?.lock().profile.clone();
        known.map_or_else(|| self.device(id).map(|(_, profile)| profile), Ok)
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

impl Place {
    fn id(&self) -> DeviceId {
        DeviceId::new(Family::WGPU, self.index)
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

impl fmt::Debug for WgpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WgpuBackend")
            .field("devices", &self.places.len())
            .field("live", &self.live_handles())
            .finish()
    }
}

/// Collects the devices of a [`WgpuBackend`]. Their numbers are in the order of these calls.
#[must_use]
pub struct WgpuBackendBuilder {
    places: Vec<Place>,
}

impl WgpuBackendBuilder {
    /// A device that the application has, with its queue. Both are handles: the backend's is one
    /// more, until the device is destroyed as far as the runtime is concerned.
    pub fn device(mut self, device: Device, queue: Queue) -> Self {
        let place = self.place(None);
        let mut state = place.lock();
        state.profile = Some(Profile::of(place.index, &device));
        state.held = Some(Held { device, queue });
        drop(state);
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
        let place = self.place(Some(Box::new(move || {
            make().map_err(|error| BackendError::failed("the application's device", error.into()))
        })));
        self.places.push(place);
        self
    }

    /// The backend.
    #[must_use]
    pub fn build(self) -> WgpuBackend {
        WgpuBackend { places: self.places.into(), live: Live::default() }
    }

    fn place(&self, make: Option<Box<Make>>) -> Place {
        Place { index: self.places.len() as u32, make, state: Mutex::default() }
    }
}

impl fmt::Debug for WgpuBackendBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WgpuBackendBuilder").field("devices", &self.places.len()).finish()
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
            match self.profile(&place.id()) {
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
        Ok(self.profile(device)?.target)
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        let known = |place: &Place| {
            let state = place.lock();
            let profile = state.profile.as_ref().filter(|profile| profile.target == *target);
            profile.map(|profile| profile.toolchain.clone())
        };
        self.places.iter().find_map(known).ok_or_else(|| {
            let message = format!("there is no device for the target `{}`", target.as_str());
            BackendError::NoDevice { message }
        })
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(WgpuModule, Option<Artifact>), BackendError> {
        let (held, profile) = self.device(device)?;
        let cache = cache::empty(&held.device);
        let module = self.module(held, spec, cache.as_ref())?;
        let artifact = cache
            .and_then(|cache| cache::data(&cache))
            .map(|data| Artifact::new(ARTIFACT, data).sealed(&profile.seal()));
        Ok((module, artifact))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<WgpuModule, BackendError> {
        let (held, profile) = self.device(device)?;
        artifact.check_seal(&profile.seal())?;
        // SAFETY: The seal says that these bytes are what `build` took from the cache of a device
        // of this target and toolchain.
        let cache = unsafe { cache::filled(&held.device, artifact.binary()) }?;
        self.module(held, spec, Some(&cache))
    }

    fn unload(&self, module: WgpuModule) -> Result<(), BackendError> {
        // wgpu keeps a pipeline until the work that uses it is done.
        drop(module);
        Ok(())
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        let Ok(place) = self.place(device) else { return Ok(()) };
        // The application's own handles are its own to drop; ours is gone after the lock.
        let _held = {
            let mut state = place.lock();
            if place.make.is_none() {
                state.profile = None;
            }
            state.held.take()
        };
        Ok(())
    }
}
