//! One entry: a value and its state word, and behind them what identifies it.

use std::mem::MaybeUninit;

use super::pins::Owner;
use super::state::State;
use crate::cache::devices::DeviceSet;
use crate::sync::{AtomicU64, Ordering, UnsafeCell, Weak};

/// The part of an entry that a pin needs: it knows the value's type and nothing of the key's.
pub(crate) struct Grain<V> {
    pub(crate) state: State,
    /// The place in the arena; never changes.
    pub(crate) index: u32,
    /// The number of the build that this entry holds now; never used twice in a cache.
    serial: AtomicU64,
    owner: Weak<dyn Owner<V>>,
    value: UnsafeCell<MaybeUninit<V>>,
}

// SAFETY: the value is written by the one thread that owns the entry (phase BUILDING), read by
// those who hold a pin or the entry, and taken by the one who owns it (phase RELEASING or
// ABANDONED); the state word orders these. So sharing a grain shares `V`s and sends them.
unsafe impl<V: Send + Sync> Sync for Grain<V> {}
// SAFETY: as above; a grain has no tie to the thread that made it.
unsafe impl<V: Send + Sync> Send for Grain<V> {}

impl<V> Grain<V> {
    fn new(index: u32, owner: Weak<dyn Owner<V>>) -> Self {
        Self {
            state: State::vacant(),
            index,
            serial: AtomicU64::new(0),
            owner,
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    pub(crate) fn owner(&self) -> &Weak<dyn Owner<V>> {
        &self.owner
    }

    #[inline]
    pub(crate) fn serial(&self) -> u64 {
        self.serial.load(Ordering::Relaxed)
    }

    /// # Safety
    /// The caller holds a pin on this entry or holds the entry itself, as long as it uses the
    /// reference, and the entry has a value (it is resident, retired or abandoned).
    #[inline]
    pub(crate) unsafe fn value(&self) -> &V {
        // SAFETY: the value was written before the entry was installed, and nobody takes it while
        // there is a pin or another's hold.
        self.value.with(|value| unsafe { (*value).assume_init_ref() })
    }

    /// # Safety
    /// The caller owns the entry, in phase BUILDING, and it has no value.
    pub(crate) unsafe fn write_value(&self, value: V) {
        // SAFETY: nobody reads a value in this phase, and its owner is alone.
        self.value.with_mut(|place| unsafe {
            (*place).write(value);
        });
    }

    /// # Safety
    /// The caller owns the entry, in phase RELEASING, or holds it, abandoned; it has a value, which
    /// is taken now and not again.
    pub(crate) unsafe fn take_value(&self) -> V {
        // SAFETY: there is no pin, and nobody else holds the entry.
        self.value.with_mut(|value| unsafe { (*value).assume_init_read() })
    }
}

/// A whole entry. The key and its devices are written by the thread that takes the entry from the
/// free list and taken by the one who gives it back; in between they only change hands as shared
/// references.
pub(crate) struct Entry<K, V> {
    pub(crate) grain: Grain<V>,
    hash: AtomicU64,
    identity: UnsafeCell<MaybeUninit<Identity<K>>>,
}

/// What a look-up asks for: a key, on a set of devices.
pub(crate) struct Identity<K> {
    pub(crate) key: K,
    pub(crate) devices: DeviceSet,
}

impl<K: PartialEq> Identity<K> {
    /// Whether this key on these devices is asked for here.
    #[inline(always)]
    pub(crate) fn is(&self, key: &K, devices: &DeviceSet) -> bool {
        self.key == *key && self.devices == *devices
    }
}

// SAFETY: the identity is written and taken by the one thread that owns the entry, under the
// ledger's lock, and read in between by those who hold that lock or a pin. See `Grain` for the rest.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Entry<K, V> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync> Send for Entry<K, V> {}

impl<K, V> Entry<K, V> {
    pub(crate) fn new(index: u32, owner: Weak<dyn Owner<V>>) -> Self {
        Self {
            grain: Grain::new(index, owner),
            hash: AtomicU64::new(0),
            identity: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        self.hash.load(Ordering::Relaxed)
    }

    /// # Safety
    /// The entry is not vacant, and stays so while the reference is used: the caller holds the
    /// ledger's lock, a pin, or the entry.
    #[inline]
    pub(crate) unsafe fn identity(&self) -> &Identity<K> {
        // SAFETY: written before the entry left VACANT, and taken only after it is unreachable.
        self.identity.with(|identity| unsafe { (*identity).assume_init_ref() })
    }

    /// VACANT to BUILDING.
    ///
    /// # Safety
    /// The caller has just taken the entry from the free list.
    pub(crate) unsafe fn occupy(&self, hash: u64, serial: u64, identity: Identity<K>) {
        self.hash.store(hash, Ordering::Relaxed);
        self.grain.serial.store(serial, Ordering::Relaxed);
        // SAFETY: a vacant entry has no readers.
        self.identity.with_mut(|place| unsafe {
            (*place).write(identity);
        });
        self.grain.state.start_build();
    }

    /// To VACANT; gives back the identity, to be dropped under no lock.
    ///
    /// # Safety
    /// The caller owns the entry, its value is gone, and it gives the entry to the free list next.
    pub(crate) unsafe fn vacate(&self) -> Identity<K> {
        // SAFETY: the caller owns the entry, and no look-up reaches it.
        let identity = self.identity.with_mut(|place| unsafe { (*place).assume_init_read() });
        self.grain.state.vacate();
        identity
    }
}
