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
    /// A [`ProfileId`]; nobody's until somebody takes the link.
    profile: AtomicUsize,
    places: [Bookmark; PLACES],
    key: OnceLock<KernelKey>,
    next: OnceLock<Box<Known>>,
}

/// So many devices, by their index, have a place in every spec. The kernels of the others are found by
/// their key.
const PLACES: usize = 16;

impl SpecKeys {
    /// What is known on this profile.
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
        let (nobodys, relaxed) = (ProfileId::NOBODYS.0, Ordering::Relaxed);
        let taken = self.profile.compare_exchange(nobodys, profile.0, relaxed, relaxed);
        taken.is_ok() || taken == Err(profile.0)
    }

    #[inline]
    pub(crate) fn key(&self) -> Option<&KernelKey> {
        self.key.get()
    }

    /// Where the kernel of this device was.
    #[inline]
    pub(crate) fn place(&self, device: &Device) -> Option<&Bookmark> {
        self.places.get(device.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Result<KernelKey, grainstore::KeyError> {
        KernelKey::builder(name).target("t").toolchain("c").language("l").source("s").build()
    }

    #[test]
    fn each_profile_has_its_key_and_who_has_no_profile_none() {
        let keys = SpecKeys::default();
        let before = keys.get(ProfileId::UNREAD);
        assert!(before.is_none() && keys.get(ProfileId(1)).is_none());
        for profile in [1, 2, 3, 2, 1] {
            let made = keys.get_or_make(ProfileId(profile), || key(&profile.to_string())).unwrap();
            assert_eq!(made.name(), profile.to_string());
            assert_eq!(keys.get(ProfileId(profile)).unwrap().key(), Some(made));
        }
        assert!(keys.get(ProfileId::UNREAD).is_none() && keys.get(ProfileId(4)).is_none());
    }
}
