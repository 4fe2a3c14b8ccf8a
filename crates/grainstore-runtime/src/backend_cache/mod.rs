//! One backend with everything around it that all backends need: identity, cache, stores, teardown.

mod giving_up;
mod hearing;
mod obtain;
mod shutdown;
mod teardown;

pub(crate) use shutdown::Ending;
pub(crate) use teardown::deadline;

use std::convert::Infallible;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use grainstore::{Cache, DeviceId, Drain, Family, Hooks, KernelKey, Pinned, Statistics};

use hearing::Hearing;

use crate::activity::{Activity, Gate, Inside};
use crate::process::Home;
use crate::profile::Profile;
use crate::table::{Opened, Table};
use crate::{
    Backend, BackendError, Device, DeviceInfo, KernelSpec, Language, Loaded, Origin, Outcome,
    RuntimeError, Settings, Target, Toolchain, Warning,
};

/// The kernels of one backend: in memory, in the stores, or built; each loaded once per device.
///
/// A cheap handle; clones share everything. [`Runtime`](crate::Runtime) puts several side by side.
/// Who has one backend and wants its own module type uses this directly.
pub struct BackendCache<B: Backend> {
    inner: Arc<Inner<B>>,
}

/// A pinned module of this backend.
type Module<B> = Pinned<Loaded<<B as Backend>::Module>>;

struct Inner<B: Backend> {
    /// First, so that its values are released while the rest is there.
    cache: Cache<KernelKey, Loaded<B::Module>>,
    table: Table,
    owner: u64,
    gate: Arc<Doorway<B>>,
    settings: Settings,
    hearing: Hearing,
}

/// The one way to the backend: nobody gets to it but through [`enter`](Self::enter), in its own
/// process and before a shutdown is complete.
struct Doorway<B> {
    backend: Arc<B>,
    name: Arc<str>,
    home: Home,
    activity: Arc<Activity>,
    /// Something was given up: the backend's own drop must not touch the driver either.
    given_up: AtomicBool,
}

/// Numbers that tell the handles of one cache from those of another. A runtime takes a block.
static OWNERS: AtomicU64 = AtomicU64::new(0);

/// Takes this many numbers in a row.
pub(crate) fn reserve_owners(count: u64) -> u64 {
    OWNERS.fetch_add(count, Ordering::Relaxed)
}

impl<B: Backend> BackendCache<B> {
    /// A cache in front of this backend. No driver is touched yet.
    ///
    /// # Errors
    /// [`RuntimeError::Setup`] for settings that make no sense.
    pub fn new(backend: B, settings: Settings) -> Result<Self, RuntimeError> {
        Self::with_owner(backend, settings, reserve_owners(1))
    }

    pub(crate) fn with_owner(
        backend: B,
        settings: Settings,
        owner: u64,
    ) -> Result<Self, RuntimeError> {
        let gate = Arc::new(Doorway {
            name: Arc::from(backend.name()),
            backend: Arc::new(backend),
            home: Home::here(),
            activity: Arc::default(),
            given_up: AtomicBool::new(false),
        });
        let cache = build_cache(&gate, &settings)?;
        let table = Table::new(owner);
        let hearing = Hearing::default();
        let cache =
            Self { inner: Arc::new(Inner { cache, table, owner, gate, settings, hearing }) };
        cache.listen();
        Ok(cache)
    }

    /// The backend's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.gate.name
    }

    /// The family of its devices.
    #[must_use]
    pub fn family(&self) -> Family {
        self.inner.gate.backend.family()
    }

    /// The languages it takes, the preferred one first.
    #[must_use]
    pub fn languages(&self) -> &[Language] {
        self.inner.gate.backend.languages()
    }

    /// Handles of the devices that are there now. A device that was there before has the handle it
    /// had; one that was destroyed or reset meanwhile has a new one. Devices whose teardown is not
    /// finished are left out.
    ///
    /// # Errors
    /// What the backend says, [`BackendError::Missing`] above all.
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

    /// This kernel on this device: from memory, from a store, or built. Callers who ask at once
    /// share one build.
    ///
    /// # Errors
    /// [`RuntimeError::Backend`] with what the backend said, [`RuntimeError::DeviceDestroyed`] for a
    /// handle of an earlier life, [`RuntimeError::Busy`] where every place is taken.
    #[inline]
    pub fn kernel(&self, device: &Device, spec: &KernelSpec) -> Result<Module<B>, RuntimeError> {
        self.look_up(device, spec, &mut None)
    }

    /// The same, with where it came from and how long that took.
    ///
    /// # Errors
    /// As [`kernel`](Self::kernel).
    pub fn kernel_with_outcome(
        &self,
        device: &Device,
        spec: &KernelSpec,
    ) -> Result<(Module<B>, Outcome), RuntimeError> {
        let began = Instant::now();
        let mut trace = None;
        let kernel = self.look_up(device, spec, &mut trace)?;
        let (origin, compile_time) = trace.unwrap_or((Origin::Memory, None));
        Ok((kernel, Outcome { origin, elapsed: began.elapsed(), compile_time }))
    }

    /// The key of this kernel on this device: what the stores know it by.
    ///
    /// # Errors
    /// When the device's target or toolchain can't be read.
    pub fn key<'s>(
        &self,
        device: &Device,
        spec: &'s KernelSpec,
    ) -> Result<&'s KernelKey, RuntimeError> {
        let profile = self.profile(device)?;
        spec.key(profile, || self.spec_toolchain(profile, spec))
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
    /// [`BackendError::Missing`] where there is no compiler.
    pub fn toolchain<'d>(&self, device: &'d Device) -> Result<&'d Toolchain, RuntimeError> {
        Ok(self.profile(device)?.toolchain())
    }

    /// Takes every kernel out of memory and has the layers above drop what they made of them,
    /// before and after. What is pinned is released when its last pin is gone.
    ///
    /// # Errors
    /// [`RuntimeError::Hook`] when a listener failed; everything is cleared all the same.
    pub fn clear(&self) -> Result<Drain<KernelKey>, RuntimeError> {
        self.inner.gate.home.check()?;
        self.inner
            .settings
            .hooks
            .around_clear(|| Ok::<_, Infallible>(self.inner.cache.clear()))
            .map_err(RuntimeError::from)
    }

    /// The figures of the cache in memory.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.inner.cache.statistics()
    }

    /// The hooks that hear of its teardowns.
    #[must_use]
    pub fn hooks(&self) -> &Hooks {
        &self.inner.settings.hooks
    }

    pub(crate) fn cache(&self) -> &Cache<KernelKey, Loaded<B::Module>> {
        &self.inner.cache
    }

    /// The hit: two loads of the handle's phase and a walk of one step, beside the cache's own.
    #[inline]
    fn look_up(
        &self,
        device: &Device,
        spec: &KernelSpec,
        trace: &mut Option<obtain::Trace>,
    ) -> Result<Module<B>, RuntimeError> {
        let key = match device.profile().and_then(|profile| spec.known_key(profile)) {
            Some(key) if device.owner() == self.inner.owner => key,
            _ => self.key(device, spec)?,
        };
        if !device.is_live() {
            return Err(self.not_live(device));
        }
        loop {
            let found = self
                .inner
                .cache
                .on(device.identity())
                .get_or_build(key, || self.obtain(device, key, spec, trace));
            match found {
                // Still live with the pin in hand: what is pinned is of this life.
                Ok(kernel) if device.is_live() => return Ok(kernel),
                Ok(_) => return Err(self.not_live(device)),
                Err(error) => self.settle(device, error)?,
            }
        }
    }

    /// Whether to ask again: yes when the build that was joined was led by a caller with an old
    /// handle, and this one is good.
    #[cold]
    fn settle(&self, device: &Device, error: grainstore::Error) -> Result<(), RuntimeError> {
        match RuntimeError::from(error) {
            RuntimeError::DeviceDestroyed { .. } if device.is_live() => Ok(()),
            RuntimeError::DeviceDestroyed { .. } => Err(self.not_live(device)),
            error => Err(error),
        }
    }

    pub(crate) fn check_live(&self, device: &Device) -> Result<(), RuntimeError> {
        if device.is_live() { Ok(()) } else { Err(self.not_live(device)) }
    }

    #[cold]
    fn not_live(&self, device: &Device) -> RuntimeError {
        if self.inner.gate.activity.gate() > Gate::Open {
            RuntimeError::ShutDown
        } else {
            RuntimeError::DeviceDestroyed { device: device.id() }
        }
    }

    fn check_owner(&self, device: &Device) -> Result<(), RuntimeError> {
        if device.owner() == self.inner.owner {
            Ok(())
        } else {
            Err(RuntimeError::ForeignDevice { device: device.id() })
        }
    }

    /// Read at the first use in each generation, so that a driver that was replaced meanwhile is
    /// noticed then.
    fn profile<'d>(&self, device: &'d Device) -> Result<&'d Arc<Profile>, RuntimeError> {
        self.check_owner(device)?;
        if let Some(profile) = device.profile() {
            return Ok(profile);
        }
        let gate = &self.inner.gate;
        let _inside =
            gate.enter(Gate::Open, || format!("reading the target of {}", device.id()))?;
        if !device.is_live() {
            return Err(self.not_live(device));
        }
        let target = gate.backend.target(&device.id()).map_err(|e| gate.error(None, e))?;
        let toolchain = gate.backend.toolchain(&target).map_err(|e| gate.error(None, e))?;
        Ok(device.set_profile(Profile::of(&gate.name, target, toolchain)))
    }

    /// Who compiles this spec, as its key says it. The backend's name is in it because two backends
    /// may name one driver in the same words, and their artifacts are not each other's.
    fn spec_toolchain(&self, profile: &Profile, spec: &KernelSpec) -> Result<String, RuntimeError> {
        let gate = &self.inner.gate;
        let _inside =
            gate.enter(Gate::Open, || format!("reading the toolchain of {}", gate.name))?;
        let toolchain = gate
            .backend
            .toolchain_for(profile.target(), spec)
            .map_err(|error| gate.error(Some(spec.name()), error))?;
        Ok(format!("{}: {}", gate.name, toolchain.as_str()))
    }

    fn enumerate(&self) -> Result<Arc<[DeviceInfo]>, RuntimeError> {
        let gate = &self.inner.gate;
        let _inside = gate.enter(Gate::Open, || format!("enumerating devices of {}", gate.name))?;
        if let Some(listed) = self.inner.table.listed() {
            return Ok(listed);
        }
        let infos = gate.backend.devices().map_err(|error| gate.error(None, error))?;
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

impl<B: Backend> Clone for BackendCache<B> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<B: Backend> std::fmt::Debug for BackendCache<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackendCache").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<B: Backend> Doorway<B> {
    /// Lets a call into the backend, or says why not. In a forked child not even a lock is taken:
    /// a thread that is not there may hold it.
    fn enter(&self, latest: Gate, what: impl FnOnce() -> String) -> Result<Inside, RuntimeError> {
        self.home.check()?;
        self.activity.enter(latest, what).ok_or(RuntimeError::ShutDown)
    }

    fn error(&self, kernel: Option<&str>, error: BackendError) -> RuntimeError {
        RuntimeError::backend(&self.name, kernel, error)
    }

    /// Releases a module; or forgets it, where its driver must not be called any more.
    fn unload(&self, loaded: Loaded<B::Module>) -> Result<(), BackendError> {
        let device = loaded.device();
        let (module, life) = loaded.into_parts();
        if !life.is_lost() {
            let name = || format!("a release on {device}");
            if let Ok(_inside) = self.enter(Gate::Leaving, name) {
                return self.backend.unload(module);
            }
        }
        mem::forget(module);
        Ok(())
    }
}

impl<B> Drop for Doorway<B> {
    fn drop(&mut self) {
        if *self.given_up.get_mut() || !self.home.is_here() {
            // Its drop would call the driver. It stays, as the operating system finds it.
            mem::forget(Arc::clone(&self.backend));
        }
    }
}

fn build_cache<B: Backend>(
    gate: &Arc<Doorway<B>>,
    settings: &Settings,
) -> Result<Cache<KernelKey, Loaded<B::Module>>, RuntimeError> {
    let release = Arc::clone(gate);
    let (name, warnings) = (Arc::clone(&gate.name), settings.warnings.clone());
    let mut builder = Cache::builder()
        .name(&*gate.name)
        .release(move |loaded| release.unload(loaded))
        .may_release(|| !giving_up::is_on())
        .on_release_error(move |error| {
            warnings.tell(&Warning::Release { backend: &name, error });
        });
    if let Some(capacity) = settings.capacity {
        builder = builder.capacity(capacity);
    }
    builder.build().map_err(RuntimeError::setup)
}
