//! What a spec keeps for each profile it was asked for: its key, made once and then only read, and
//! where its kernels were.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use grainstore::{Bookmark, KernelKey};

use crate::Device;
use crate::profile::ProfileId;

/// A list that only grows, at its end, with a link for each profile. A reader follows it without a
/// lock and may keep what it finds as long as the list: links never move.
///
/// A spec meets one profile for each kind of device it runs on, so the walk is one step or two. The
/// first link lies in the list itself, so that a hit has one pointer less to follow.
#[derive(Default)]
pub(crate) struct SpecKeys(Known);

/// What is known of a spec on one profile.
#[derive(Default)]
pub(crate) struct Known {
    /// A [`ProfileId`]; none until the first link gets its own.
    profile: AtomicUsize,
    places: [Bookmark; PLACES],
    key: OnceLock<KernelKey>,
    next: OnceLock<Box<Known>>,
}

/// So many devices of one profile each have a place of their own. Where there are more, two share
/// one, and the one that comes second is slower by a probe.
const PLACES: usize = 8;

impl SpecKeys {
    /// What is known on this profile. Where that is nothing, it may be a link of no profile's yet,
    /// which has no key and whose places lead nowhere.
    #[inline]
    pub(crate) fn get(&self, profile: ProfileId) -> Option<&Known> {
        let mut link = &self.0;
        while link.profile.load(Ordering::Relaxed) != profile.0 {
            link = link.next.get()?;
        }
        Some(link)
    }

    /// The key of this profile, made if it is not there. Two threads may both make it: the one that
    /// comes second finds the other's at the end of its walk.
    pub(crate) fn get_or_make<E>(
        &self,
        profile: ProfileId,
        make: impl FnOnce() -> Result<KernelKey, E>,
    ) -> Result<&KernelKey, E> {
        if let Some(key) = self.get(profile).and_then(Known::key) {
            return Ok(key);
        }
        let key = make()?;
        let mut link = &self.0;
        while !link.is_of(profile) {
            link = link.next.get_or_init(Box::default);
        }
        Ok(link.key.get_or_init(|| key))
    }
}

impl Known {
    /// Whether this is the profile's link, which it becomes if it is nobody's.
    fn is_of(&self, profile: ProfileId) -> bool {
        let (none, relaxed) = (ProfileId::NONE.0, Ordering::Relaxed);
        let taken = self.profile.compare_exchange(none, profile.0, relaxed, relaxed);
        taken.is_ok() || taken == Err(profile.0)
    }

    #[inline]
    pub(crate) fn key(&self) -> Option<&KernelKey> {
        self.key.get()
    }

    /// Where the kernel of this device was, or that of another one whose index is a multiple of
    /// [`PLACES`] away.
    #[inline]
    pub(crate) fn place(&self, device: &Device) -> &Bookmark {
        &self.places[device.identity().index() as usize % PLACES]
    }
}
