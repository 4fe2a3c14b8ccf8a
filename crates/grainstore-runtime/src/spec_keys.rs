//! The keys of one spec, one for each profile it was asked for: made once, then only read.

use std::sync::OnceLock;

use grainstore::KernelKey;

use crate::profile::ProfileId;

/// A list that only grows, at its end. A reader follows it without a lock and may keep what it
/// finds as long as the list: links never move.
///
/// A spec meets one profile for each kind of device it runs on, so the walk is one step or two.
pub(crate) struct SpecKeys(OnceLock<Box<Link>>);

struct Link {
    profile: ProfileId,
    key: KernelKey,
    next: SpecKeys,
}

impl SpecKeys {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    #[inline]
    pub(crate) fn get(&self, profile: ProfileId) -> Option<&KernelKey> {
        let mut at = self;
        while let Some(link) = at.0.get() {
            if link.profile == profile {
                return Some(&link.key);
            }
            at = &link.next;
        }
        None
    }

    /// The key of this profile, made if it is not there. Two threads may both make it: the one that
    /// comes second finds the other's at the end of its walk.
    pub(crate) fn get_or_make<E>(
        &self,
        profile: ProfileId,
        make: impl FnOnce() -> Result<KernelKey, E>,
    ) -> Result<&KernelKey, E> {
        if let Some(key) = self.get(profile) {
            return Ok(key);
        }
        let mut mine = Some(Box::new(Link { profile, key: make()?, next: Self::new() }));
        let mut at = self;
        loop {
            if let Some(link) = at.0.get() {
                if link.profile == profile {
                    return Ok(&link.key);
                }
                at = &link.next;
            } else if let Some(link) = mine.take() {
                // Lost against another thread, it comes back and is tried at the next place.
                mine = at.0.set(link).err();
            }
        }
    }
}
