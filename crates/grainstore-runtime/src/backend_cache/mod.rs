//! One backend with everything around it that all backends need: identity, cache, stores, teardown.

mod ahead;
mod devices;
mod doorway;
mod giving_up;
mod hearing;
mod obtain;
mod shutdown;
mod tasks;
mod teardown;
#[cfg(test)]
mod tests;

pub(crate) use hearing::reset;
pub(crate) use shutdown::Ending;
pub(crate) use teardown::deadline;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use grainstore::{Cache, Drain, Family, Hooks, KernelKey, Pinned, Statistics};

use doorway::Doorway;
use hearing::Hearing;

use crate::activity::Gate;
use crate::profile::{Profile, ProfileId};
use crate::table::Table;
use crate::{
    Backend, BackendError, Device, KernelSpec, Language, Loaded, Origin, Outcome, RuntimeError,
    Settings, Warning,
};

/// The kernels of one backend: in memory, in the stores, or built; each loaded once per device.
///
/// A cheap handle; clones share everything. [`Runtime`](crate::Runtime) puts several side by side.
/// Who has one backend and wants its own module type uses this directly.
pub struct BackendCache<B: Backend> {
    /// First, so that its values are released while the rest is there; and here, not behind the
    /// pointer below, since a hit needs nothing else.
    cache: Cache<KernelKey, Loaded<B::Module>>,
    inner: Arc<Inner<B>>,
}

/// A pinned module of this backend.
type Module<B> = Pinned<Loaded<<B as Backend>::Module>>;

struct Inner<B: Backend> {
    table: Table,
    owner: u64,
    door: Arc<Doorway<B>>,
    settings: Settings,
    hearing: Hearing,
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
        let door = Arc::new(Doorway::new(backend));
        let cache = build_cache(&door, &settings)?;
        let table = Table::new(owner);
        let hearing = Hearing::default();
        let cache =
            Self { cache, inner: Arc::new(Inner { table, owner, door, settings, hearing }) };
        cache.listen();
        Ok(cache)
    }

    /// The backend's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.door.name
    }

    /// The family of its devices.
    #[must_use]
    pub fn family(&self) -> Family {
        self.inner.door.backend.family()
    }

    /// The languages it takes, the preferred one first.
    #[must_use]
    pub fn languages(&self) -> &[Language] {
        self.inner.door.backend.languages()
    }

    /// This kernel on this device: from memory, from a store, or built. Callers who ask at once
    /// share one build.
    ///
    /// # Errors
    /// [`RuntimeError::Backend`] with what the backend said, [`RuntimeError::DeviceDestroyed`] for a
    /// handle of an earlier life, [`RuntimeError::Busy`] where every place is taken.
    #[inline]
    pub fn kernel(&self, device: &Device, spec: &KernelSpec) -> Result<Module<B>, RuntimeError> {
        match self.at_hand(device, spec) {
            Some(kernel) => Ok(kernel),
            None => self.look_up(device, spec),
        }
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
        let kernel = self.get_or_obtain(device, spec, &mut trace)?;
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

    /// Takes every kernel out of memory and has the layers above drop what they made of them,
    /// before and after. What is pinned is released when its last pin is gone.
    ///
    /// # Errors
    /// [`RuntimeError::Hook`] when a listener failed; everything is cleared all the same.
    pub fn clear(&self) -> Result<Drain<KernelKey>, RuntimeError> {
        self.inner.door.home.check()?;
        self.inner
            .settings
            .hooks
            .around_clear(|| Ok::<_, Infallible>(self.cache.clear()))
            .map_err(RuntimeError::from)
    }

    /// Takes one kernel out of memory, so that the next request looks for it anew: in the stores,
    /// then in the compiler. What is pinned is released when its last pin is gone; a build of it
    /// that is under way is told [`Removed`](grainstore::Error::Removed).
    ///
    /// # Errors
    /// [`RuntimeError::DeviceDestroyed`] for a handle of an earlier life.
    pub fn remove(
        &self,
        device: &Device,
        spec: &KernelSpec,
    ) -> Result<Drain<KernelKey>, RuntimeError> {
        self.inner.door.home.check()?;
        let key = self.key(device, spec)?;
        self.check_live(device)?;
        Ok(self.cache.on(device.identity()).remove(key))
    }

    /// The figures of the cache in memory.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.cache.statistics()
    }

    /// The hooks that hear of its teardowns.
    #[must_use]
    pub fn hooks(&self) -> &Hooks {
        &self.inner.settings.hooks
    }

    pub(crate) fn cache(&self) -> &Cache<KernelKey, Loaded<B::Module>> {
        &self.cache
    }

    /// What is in memory where it was.
    #[inline]
    pub(crate) fn at_hand(&self, device: &Device, spec: &KernelSpec) -> Option<Module<B>> {
        if device.owner() == self.inner.owner { self.at_place(device, spec) } else { None }
    }

    /// The same for a device that is known to be this cache's. It is always part of its caller, and
    /// waits for as few loads after each other as can be: that is what a hit costs.
    #[inline(always)]
    pub(crate) fn at_place(&self, device: &Device, spec: &KernelSpec) -> Option<Module<B>> {
        // Nothing is known for a handle of an earlier life, so that it pins nothing.
        let known = spec.known(device.profile_id())?;
        let place = known.place(device)?;
        // A handle that is live with the pin in hand was live when the pin was taken, so what is
        // pinned is of its life.
        self.cache.try_get_at(place, |loaded| device.serves(loaded.life()))
    }

    /// What is in memory, by its key: for those who found nothing at its place.
    #[cold]
    #[inline(never)]
    pub(crate) fn by_key(&self, device: &Device, spec: &KernelSpec) -> Option<Module<B>> {
        if device.owner() != self.inner.owner || !device.is_live() {
            return None;
        }
        let key = spec.known(device.profile_id())?.key()?;
        let kernel = self.cache.on(device.identity()).try_get(key)?;
        // As in `at_place`.
        device.is_live().then_some(kernel)
    }

    /// The next request on this profile finds the kernel at its place. Only what went the longest way
    /// is noted: where two caches ask with one spec, they do not write to it by turns.
    pub(super) fn note_place(
        profile: ProfileId,
        device: &Device,
        spec: &KernelSpec,
        kernel: &Module<B>,
    ) {
        if let Some(place) = spec.known(profile).and_then(|known| known.place(device)) {
            place.set(kernel);
        }
    }

    /// What is in memory, at its place or not.
    #[inline]
    pub(crate) fn in_memory(&self, device: &Device, spec: &KernelSpec) -> Option<Module<B>> {
        match self.at_hand(device, spec) {
            Some(kernel) => Some(kernel),
            None => self.by_key(device, spec),
        }
    }

    /// The longer ways.
    #[cold]
    fn look_up(&self, device: &Device, spec: &KernelSpec) -> Result<Module<B>, RuntimeError> {
        match self.by_key(device, spec) {
            Some(kernel) => Ok(kernel),
            None => self.get_or_obtain(device, spec, &mut None),
        }
    }

    /// The longest way: what is there, or is built, or what is wrong; and a note of where it came from.
    pub(crate) fn get_or_obtain(
        &self,
        device: &Device,
        spec: &KernelSpec,
        trace: &mut Option<obtain::Trace>,
    ) -> Result<Module<B>, RuntimeError> {
        // Before any lock: a thread that held one may not be there.
        self.inner.door.home.check()?;
        let profile = self.profile(device)?;
        let key = self.key(device, spec)?;
        self.check_live(device)?;
        let kernel = self.miss(device, key, spec, trace)?;
        Self::note_place(profile.id(), device, spec, &kernel);
        Ok(kernel)
    }

    /// The miss: a build of one's own, or of somebody who was sooner.
    #[cold]
    fn miss(
        &self,
        device: &Device,
        key: &KernelKey,
        spec: &KernelSpec,
        trace: &mut Option<obtain::Trace>,
    ) -> Result<Module<B>, RuntimeError> {
        loop {
            let found = self
                .cache
                .on(device.identity())
                .get_or_build(key, || self.obtain(device, key, spec, trace));
            if let Some(kernel) = self.settle(device, found)? {
                return Ok(kernel);
            }
        }
    }

    /// What the cache's answer means for this handle. Nothing: ask again, since the build that was
    /// joined was led by a caller with an old handle, and this one is good.
    fn settle(
        &self,
        device: &Device,
        found: Result<Module<B>, grainstore::Error>,
    ) -> Result<Option<Module<B>>, RuntimeError> {
        match found.map_err(RuntimeError::from) {
            // As in `at_place`.
            Ok(kernel) if device.is_live() => Ok(Some(kernel)),
            Err(RuntimeError::DeviceDestroyed { .. }) if device.is_live() => Ok(None),
            Ok(_) | Err(RuntimeError::DeviceDestroyed { .. }) => Err(self.not_live(device)),
            Err(error) => Err(error),
        }
    }

    #[inline]
    pub(crate) fn check_live(&self, device: &Device) -> Result<(), RuntimeError> {
        if device.is_live() { Ok(()) } else { Err(self.not_live(device)) }
    }

    /// Whether this is the process that made it.
    pub(crate) fn check_home(&self) -> Result<(), RuntimeError> {
        self.inner.door.home.check()
    }

    #[cold]
    fn not_live(&self, device: &Device) -> RuntimeError {
        if self.inner.door.activity.gate() > Gate::Open {
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

    /// Who compiles this spec, as its key says it. The backend's name is in it because two backends
    /// may name one driver in the same words, and their artifacts are not each other's.
    fn spec_toolchain(&self, profile: &Profile, spec: &KernelSpec) -> Result<String, RuntimeError> {
        self.check_language(spec)?;
        let door = &self.inner.door;
        let _inside =
            door.enter(Gate::Open, || format!("reading the toolchain of {}", door.name))?;
        let toolchain = door
            .backend
            .toolchain_for(profile.target(), spec)
            .map_err(|error| door.error(Some(spec.name()), error))?;
        Ok(format!("{}: {}", door.name, toolchain.as_str()))
    }

    fn check_language(&self, spec: &KernelSpec) -> Result<(), RuntimeError> {
        let takes = self.languages();
        if takes.contains(&spec.language()) {
            return Ok(());
        }
        let names: Vec<_> = takes.iter().map(|language| language.name()).collect();
        let error = BackendError::unsupported(
            format!("the source is in {}, which this backend does not take", spec.language()),
            format!("it takes {}", names.join(", ")),
        );
        Err(self.inner.door.error(Some(spec.name()), error))
    }
}

impl<B: Backend> Clone for BackendCache<B> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), inner: Arc::clone(&self.inner) }
    }
}

impl<B: Backend> std::fmt::Debug for BackendCache<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackendCache").field("name", &self.name()).finish_non_exhaustive()
    }
}

fn build_cache<B: Backend>(
    door: &Arc<Doorway<B>>,
    settings: &Settings,
) -> Result<Cache<KernelKey, Loaded<B::Module>>, RuntimeError> {
    let release = Arc::clone(door);
    let (name, warnings) = (Arc::clone(&door.name), settings.warnings.clone());
    let mut builder = Cache::builder()
        .name(&*door.name)
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
