//! The keys of one spec, one for each profile it was asked for: made once, then only read.

use std::sync::OnceLock;

use grainstore::KernelKey;

use crate::profile::ProfileId;

/// A list that only grows, at its end. A reader follows it without a lock and may keep what it
/// finds as long as the list: links never move.
///
/// A spec meets one profile for each kind of device it runs on, so the walk is one step or two. The
/// first link lies in the list itself, so that a hit has one pointer less to follow.
pub(crate) struct SpecKeys(OnceLock<Link>);

struct Link {
    profile: ProfileId,
    key: KernelKey,
    next: OnceLock<Box<Link>>,
}

impl SpecKeys {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    #[inline]
    pub(crate) fn get(&self, profile: ProfileId) -> Option<&KernelKey> {
        let first = self.0.get()?;
        if first.profile == profile { Some(&first.key) } else { first.find(profile) }
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
        let key = make()?;
        let new = || Link { profile, key: key.clone(), next: OnceLock::new() };
        let mut link = self.0.get_or_init(new);
        while link.profile != profile {
            link = link.next.get_or_init(|| Box::new(new()));
        }
        Ok(&link.key)
    }
}

impl Link {
    /// The key of this profile behind this link.
    fn find(&self, profile: ProfileId) -> Option<&KernelKey> {
        let mut at = &self.next;
        while let Some(link) = at.get() {
            if link.profile == profile {
                return Some(&link.key);
            }
            at = &link.next;
        }
        None
    }
}
