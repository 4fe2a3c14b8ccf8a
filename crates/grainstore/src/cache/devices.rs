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

    /// What this set does to the hash of a key. Nothing for no device.
    #[inline]
    pub(crate) fn mix(&self, hasher: &impl BuildHasher, hash: u64) -> u64 {
        match self {
            Self::None => hash,
            Self::One(_) | Self::Several(_) => hash ^ hasher.hash_one(self.as_slice()),
        }
    }
}

/// A hash of the key alone, under the cache's own seed.
#[inline]
pub(crate) fn hash_key<K: Hash>(hasher: &impl BuildHasher, key: &K) -> u64 {
    hasher.hash_one(key)
}
