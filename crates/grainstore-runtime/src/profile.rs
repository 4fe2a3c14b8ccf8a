//! What code is made for and by whom, as one small number: the part of a key that a device gives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Target, Toolchain};

/// Every profile that was ever met, once. Devices come and go by the million; kinds of devices do
/// not, so this stays as small as the list of drivers and compilers that the process has seen.
static MET: Mutex<Option<HashMap<Texts, Arc<Profile>>>> = Mutex::new(None);

/// The texts that tell profiles apart: backend, target, toolchain.
type Texts = (String, Target, Toolchain);

/// A number that two profiles share exactly when all their texts are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProfileId(pub(crate) usize);

impl ProfileId {
    /// No profile's: of what waits for one.
    pub(crate) const NOBODYS: Self = Self(0);
    /// No profile's, and nothing is ever kept under it: of a device whose own was not read
    /// yet, or that is not live any more.
    pub(crate) const UNREAD: Self = Self(usize::MAX);
}

/// One backend's target and toolchain.
#[derive(Debug)]
pub(crate) struct Profile {
    id: ProfileId,
    target: Target,
    toolchain: Toolchain,
}

impl Profile {
    /// The profile of these texts: the one that is there already, if there is one.
    pub(crate) fn of(backend: &str, target: Target, toolchain: Toolchain) -> Arc<Self> {
        let mut met = MET.lock().unwrap_or_else(PoisonError::into_inner);
        let met = met.get_or_insert_with(HashMap::new);
        let next = ProfileId(met.len() + 1);
        let texts = (backend.to_owned(), target, toolchain);
        if let Some(profile) = met.get(&texts) {
            return Arc::clone(profile);
        }
        let profile =
            Arc::new(Self { id: next, target: texts.1.clone(), toolchain: texts.2.clone() });
        met.insert(texts, Arc::clone(&profile));
        profile
    }

    #[inline]
    pub(crate) fn id(&self) -> ProfileId {
        self.id
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn toolchain(&self) -> &Toolchain {
        &self.toolchain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_profile_and_different_ones_are_two() {
        let of = |backend, target, toolchain| {
            Profile::of(backend, Target::new(target), Toolchain::new(toolchain)).id()
        };
        assert_eq!(of("a", "t", "c 1"), of("a", "t", "c 1"));
        assert_ne!(of("a", "t", "c 1"), of("b", "t", "c 1"));
        assert_ne!(of("a", "t", "c 1"), of("a", "u", "c 1"));
        assert_ne!(of("a", "t", "c 1"), of("a", "t", "c 2"));
    }
}
