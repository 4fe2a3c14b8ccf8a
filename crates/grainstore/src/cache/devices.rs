//! The set of devices that a value lives on: none, one, or several.

use std::hash::{BuildHasher, Hash};

use crate::DeviceId;
use crate::sync::Arc;

/// Part of a look-up's identity. Order and repetition do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DeviceSet {
    None,
    One(DeviceId),
    /// At least two, sorted. Behind a thin pointer, since few values have it and all have its room.
    Several(Arc<Box<[DeviceId]>>),
}

impl DeviceSet {
    /// No device, to be referred to.
    pub(crate) const NONE: Self = Self::None;

    pub(crate) fn of(devices: &[DeviceId]) -> Self {
        let mut sorted = devices.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        match sorted[..] {
            [] => Self::None,
            [device] => Self::One(device),
            _ => Self::Several(Arc::new(sorted.into())),
        }
    }

    pub(crate) fn as_slice(&self) -> &[DeviceId] {
        match self {
            Self::None => &[],
            Self::One(device) => std::slice::from_ref(device),
            Self::Several(devices) => devices,
        }
    }
}

/// The hash of a key on a set of devices; on none, the key's own.
#[inline]
pub(crate) fn hash_with<K: Hash>(hasher: &impl BuildHasher, key: &K, devices: &DeviceSet) -> u64 {
    let hash = hasher.hash_one(key);
    match devices {
        DeviceSet::None => hash,
        DeviceSet::One(_) | DeviceSet::Several(_) => hash ^ hasher.hash_one(devices.as_slice()),
    }
}
