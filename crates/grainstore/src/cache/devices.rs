//! The set of devices that a value lives on: none, one, or several.

use std::hash::{BuildHasher, Hash};

use crate::DeviceId;
use crate::sync::Arc;

/// Part of a look-up's identity. Order and repetition do not matter.
#[derive(Clone, Debug, Eq)]
pub(crate) enum DeviceSet {
    None,
    One(DeviceId),
    /// At least two, sorted. Behind a thin pointer, since few values have it and all have its room.
    Several(Arc<Box<[DeviceId]>>),
}

impl PartialEq for DeviceSet {
    /// Written out, since it is part of each hit: none and one are compared on the spot.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::One(one), Self::One(other)) => one == other,
            (Self::Several(devices), Self::Several(others)) => same(devices, others),
            _ => false,
        }
    }
}

#[cold]
#[inline(never)]
fn same(devices: &Arc<Box<[DeviceId]>>, others: &Arc<Box<[DeviceId]>>) -> bool {
    Arc::ptr_eq(devices, others) || devices == others
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
        // The key's hash is as good as random already, so that it is enough to have its upper bits,
        // which the index goes by, differ from device to device.
        DeviceSet::One(device) => hash ^ device.number().wrapping_mul(SPREAD),
        DeviceSet::Several(devices) => hash ^ hash_several(hasher, devices),
    }
}

#[cold]
#[inline(never)]
fn hash_several(hasher: &impl BuildHasher, devices: &[DeviceId]) -> u64 {
    hasher.hash_one(devices)
}

/// 2^64 divided by the golden ratio: multiples of it are far apart from each other (Knuth, The Art of
/// Computer Programming, volume 3, section 6.4). Device number zero is not without effect.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;
    use std::collections::HashSet;

    #[test]
    fn a_key_has_another_hash_on_each_device_and_without_one() {
        let hasher = crate::hashing::State::default();
        let hash = |devices: &[DeviceId]| hash_with(&hasher, &7_u64, &DeviceSet::of(devices));
        let mut tags = HashSet::from([hash(&[]) >> 32]);
        for family in [Family::CUDA, Family::HOST, Family::OPENCL] {
            for index in 0..1_000 {
                let device = DeviceId::new(family, index);
                assert!(tags.insert(hash(&[device]) >> 32), "{device} collides");
            }
        }
        let (one, two) = (DeviceId::new(Family::CUDA, 0), DeviceId::new(Family::CUDA, 1));
        assert_eq!(hash(&[one, two]), hash(&[two, one, two]));
        assert!(tags.insert(hash(&[one, two]) >> 32));
    }

    /// The upper half of a hash is the key's tag in the index.
    #[test]
    fn keys_are_told_apart_on_devices_as_well_as_on_none() {
        let hasher = crate::hashing::State::default();
        for count in 0..3 {
            let on: Vec<_> = (0..count).map(|index| DeviceId::new(Family::CUDA, index)).collect();
            let set = DeviceSet::of(&on);
            let tags: HashSet<_> =
                (0..4_000_u64).map(|key| hash_with(&hasher, &key, &set) >> 32).collect();
            assert!(tags.len() >= 3_990, "{} tags of 4000 keys on {count} devices", tags.len());
        }
    }

    #[test]
    fn d2_sets_are_equal_where_their_devices_are() {
        let [a, b, c] = [0, 1, 2].map(|index| DeviceId::new(Family::CUDA, index));
        let host = DeviceId::new(Family::HOST, 0);
        let lists: [&[DeviceId]; 7] = [&[], &[a], &[b], &[host], &[a, b], &[a, c], &[a, b, c]];
        for (at, one) in lists.iter().enumerate() {
            for (other_at, other) in lists.iter().enumerate() {
                let backwards: Vec<_> = other.iter().rev().chain(*other).copied().collect();
                let equal = DeviceSet::of(one) == DeviceSet::of(&backwards);
                assert_eq!(equal, at == other_at, "{one:?} {other:?}");
            }
        }
    }
}
