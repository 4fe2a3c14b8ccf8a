//! A device as its users hold it: a handle that is good for one life of the device.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use grainstore::DeviceId;

use crate::DeviceInfo;
use crate::loaded::Life;
use crate::profile::{Profile, ProfileId};

/// A handle of a device. Cheap to clone; equal to its clones and to nothing else.
///
/// It belongs to one life of the device: once the device was destroyed, lost or reset, the handle
/// gets [`DeviceDestroyed`](crate::RuntimeError::DeviceDestroyed) for good, also when a device of
/// the same identity is there again.
#[derive(Clone)]
pub struct Device {
    /// What a hit begins with is here, not behind the pointer: whose it is, and which.
    owner: u64,
    index: usize,
    handle: Arc<Handle>,
}

struct Handle {
    generation: u64,
    info: DeviceInfo,
    phase: AtomicU8,
    life: Arc<Life>,
    /// Where the life is, as long as the phase is [`Live`](Phase::Live); then zero. So a hit learns by
    /// one look that the handle is good, and that what it found is of its life.
    serves: AtomicUsize,
    /// Read once for each generation, at the first kernel.
    profile: OnceLock<Arc<Profile>>,
    /// Its number, once it was read and as long as the phase is `Live`.
    profile_id: AtomicUsize,
}

/// Where a handle is in its life. It only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Good for kernels.
    Live,
    /// Its device's teardown has begun, and may have to be called again.
    Leaving,
    /// The handles were reset; the device itself lives on, under another handle.
    Retired,
    /// The device was destroyed.
    Gone,
}

impl Device {
    pub(crate) fn new(owner: u64, generation: u64, info: DeviceInfo, life: Arc<Life>) -> Self {
        let phase = AtomicU8::new(Phase::Live as u8);
        let serves = AtomicUsize::new(Arc::as_ptr(&life).addr());
        let (profile, profile_id) = (OnceLock::new(), AtomicUsize::new(ProfileId::UNREAD.0));
        let index = info.id.index() as usize;
        let handle =
            Arc::new(Handle { generation, info, phase, life, serves, profile, profile_id });
        Self { owner, index, handle }
    }

    /// Its identity, the same in all its lives.
    #[must_use]
    #[inline]
    pub fn id(&self) -> DeviceId {
        self.handle.info.id
    }

    /// The name that its driver gives, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.handle.info.name
    }

    /// The driver and its version, for people.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.handle.info.driver
    }

    /// Which life this is: a number that no other handle of this runtime's backend has.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.handle.generation
    }

    /// Whether kernels can be had with this handle.
    #[must_use]
    #[inline]
    pub fn is_live(&self) -> bool {
        // Acquire: who sees this after it has taken a pin knows that no teardown had begun then.
        self.handle.serves.load(Ordering::Acquire) != 0
    }

    #[inline]
    pub(crate) fn owner(&self) -> u64 {
        self.owner
    }

    /// The backend's own index of the device.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    #[inline]
    pub(crate) fn identity(&self) -> &DeviceId {
        &self.handle.info.id
    }

    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.handle.life
    }

    /// Its target and toolchain, once they were read.
    pub(crate) fn profile(&self) -> Option<&Arc<Profile>> {
        self.handle.profile.get()
    }

    /// Keeps what was read, unless another thread was sooner; the first one read counts.
    pub(crate) fn set_profile(&self, profile: Arc<Profile>) -> &Arc<Profile> {
        let profile = self.handle.profile.get_or_init(|| profile);
        self.handle.profile_id.store(profile.id().0, Ordering::Relaxed);
        if !self.is_live() {
            self.handle.profile_id.store(ProfileId::UNREAD.0, Ordering::Relaxed);
        }
        profile
    }

    /// The number of its profile, if that was read and the handle is live. Whoever relies on the
    /// handle's being live asks [`serves`](Self::serves) with the pin in hand.
    #[inline]
    pub(crate) fn profile_id(&self) -> ProfileId {
        ProfileId(self.handle.profile_id.load(Ordering::Relaxed))
    }

    pub(crate) fn phase(&self) -> Phase {
        const ALL: [Phase; 4] = [Phase::Live, Phase::Leaving, Phase::Retired, Phase::Gone];
        ALL.into_iter()
            .find(|phase| *phase as u8 == self.handle.phase.load(Ordering::Acquire))
            .unwrap_or(Phase::Gone)
    }

    /// Whether this handle is live, and its life that one.
    #[inline]
    pub(crate) fn serves(&self, life: &Arc<Life>) -> bool {
        // Acquire: as in `is_live`.
        self.handle.serves.load(Ordering::Acquire) == Arc::as_ptr(life).addr()
    }

    pub(crate) fn advance(&self, phase: Phase) {
        if phase > Phase::Live {
            self.handle.serves.store(0, Ordering::Release);
            self.handle.profile_id.store(ProfileId::UNREAD.0, Ordering::Relaxed);
        }
        self.handle.phase.fetch_max(phase as u8, Ordering::AcqRel);
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }
}

impl Eq for Device {}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.handle).hash(state);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("id", &self.id())
            .field("name", &self.name())
            .field("generation", &self.generation())
            .field("phase", &self.phase())
            .finish()
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id(), self.name())
    }
}
