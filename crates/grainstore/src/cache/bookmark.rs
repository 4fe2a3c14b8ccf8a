//! Where a value was, shared by threads: what a [`Slot`](super::slot::Slot) knows, without its key.

use std::fmt;

use super::core::entry::Grain;
use super::pinned::Pinned;
use crate::sync::{AtomicPtr, AtomicU64, Ordering, fence};

/// Where a value was found, to find it there again without its key: a few words that lie wherever a
/// caller keeps what it asks with.
///
/// It leads to the one value that it was [set](Self::set) to last, or to nothing: not to what the
/// same key got later, nor to another cache's. It pins nothing and keeps nothing open. Any threads may
/// set it and go by it at once.
///
/// ```
/// use grainstore::{Bookmark, Cache, Error, Pinned};
///
/// struct Spec {
///     source: String,
///     was: Bookmark,
/// }
///
/// fn module(cache: &Cache<String, usize>, spec: &Spec) -> Result<Pinned<usize>, Error> {
///     if let Some(module) = cache.try_get_at(&spec.was, |_| true) {
///         return Ok(module);
///     }
///     let compile = || Ok::<_, std::io::Error>(spec.source.len());
///     let module = cache.get_or_build(&spec.source, compile)?;
///     spec.was.set(&module);
///     Ok(module)
/// }
///
/// let cache = Cache::builder().build()?;
/// let spec = Spec { source: "...".into(), was: Bookmark::new() };
/// for _ in 0..3 {
///     assert_eq!(*module(&cache, &spec)?, 3);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Bookmark {
    /// Odd while somebody writes the rest, and another number after it. Who reads the rest, and the
    /// same even number before and after, has read what was written at once (a sequence lock: Boehm,
    /// "Can Seqlocks Get Along with Programming Language Memory Models?", MSPC 2012).
    version: AtomicU64,
    /// The cache's id.
    cache: AtomicU64,
    /// A grain of that cache.
    grain: AtomicPtr<()>,
    /// The number of the build that was in that grain, which no other build in the cache has.
    serial: AtomicU64,
}

/// What a bookmark leads to: a grain of a cache, and the build that was there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) cache: u64,
    grain: *mut (),
    pub(crate) serial: u64,
}

impl Bookmark {
    /// One that leads to nothing.
    #[cfg(not(any(loom, shuttle)))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            cache: AtomicU64::new(0),
            grain: AtomicPtr::new(std::ptr::null_mut()),
            serial: AtomicU64::new(0),
        }
    }

    /// As the constant one, which a model's atomics do not allow.
    #[cfg(any(loom, shuttle))]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on it leads to this value. Writes nothing where it does already, nor while another
    /// thread sets it: then it leads to that one's.
    pub fn set<V>(&self, value: &Pinned<V>) {
        let grain = value.grain();
        // The cache is there as long as the value is.
        let Some(id) = grain.owner().upgrade().map(|owner| owner.id()) else { return };
        let address = std::ptr::from_ref(grain).cast_mut().cast();
        let new = Place { cache: id, grain: address, serial: grain.serial() };
        if self.place() == Some(new) {
            return;
        }
        let version = self.version.load(Ordering::Relaxed);
        if version % 2 == 1 {
            return;
        }
        let (taken, not) = (Ordering::Acquire, Ordering::Relaxed);
        if self.version.compare_exchange(version, version + 1, taken, not).is_err() {
            return;
        }
        // The fence keeps the stores behind it from being seen before the odd number is.
        fence(Ordering::Release);
        self.cache.store(new.cache, Ordering::Relaxed);
        self.grain.store(new.grain, Ordering::Relaxed);
        self.serial.store(new.serial, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    /// What it leads to, if that is not being changed now.
    #[inline(always)]
    pub(crate) fn place(&self) -> Option<Place> {
        let version = self.version.load(Ordering::Acquire);
        let cache = self.cache.load(Ordering::Relaxed);
        let grain = self.grain.load(Ordering::Relaxed);
        let serial = self.serial.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if version != self.version.load(Ordering::Relaxed) || version & 1 != 0 {
            return None;
        }
        Some(Place { cache, grain, serial })
    }
}

impl Place {
    /// The grain.
    ///
    /// # Safety
    /// The cache of that id holds values of this type, and lives as long as the reference is used.
    #[inline(always)]
    pub(crate) unsafe fn grain<'a, V>(self) -> &'a Grain<V> {
        // SAFETY: `Bookmark::set` wrote both at once, of one value. A grain lies in its cache's
        // arena, which lives as long as the cache.
        unsafe { &*self.grain.cast() }
    }
}

impl fmt::Debug for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bookmark").finish_non_exhaustive()
    }
}
