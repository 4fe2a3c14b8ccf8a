//! Telling an observer, and a tracing subscriber, what happens; never on the path of a hit.

use super::{Core, Key};
use crate::cache::devices::DeviceSet;
use crate::cache::event::{Event, EventKind};
use crate::contain::contain;

/// What was noted under the lock, to be told after it.
pub(crate) type Noted<K> = Vec<(K, DeviceSet)>;

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// Tells the observer. The caller leads the entry's build, or holds or owns the entry, and holds
    /// no lock.
    pub(crate) fn observe(&self, index: u32, kind: EventKind<'_>) {
        if self.config.observer.is_some() {
            // SAFETY: as the caller has the entry, it is not vacant.
            let identity = unsafe { self.entry(index).identity() };
            self.tell_observer(&identity.key, &identity.devices, kind);
        }
    }

    fn tell_observer(&self, key: &K, devices: &DeviceSet, kind: EventKind<'_>) {
        if let Some(observer) = &self.config.observer {
            let event = Event { key, devices: devices.as_slice(), kind };
            let _ = contain(|| observer(&event));
        }
    }

    /// Notes an entry for [`tell_noted`](Self::tell_noted), if there is an observer. Under the lock.
    pub(crate) fn note(&self, noted: &mut Noted<K>, index: u32) {
        if self.config.observer.is_some() {
            // SAFETY: the caller found the entry under the lock, where it is not vacant.
            let identity = unsafe { self.entry(index).identity() };
            // A key whose clone panics goes untold: its entry is half way out.
            noted.extend(contain(|| (identity.key.clone(), identity.devices.clone())));
        }
    }

    pub(crate) fn tell_noted(&self, noted: &Noted<K>, kind: EventKind<'_>) {
        for (key, devices) in noted {
            self.tell_observer(key, devices, kind);
        }
    }

    /// The span of one build.
    #[cfg(feature = "tracing")]
    pub(crate) fn span(&self) -> tracing::Span {
        tracing::info_span!("build", cache = &*self.config.name)
    }

    /// Without the feature, nothing.
    #[cfg(not(feature = "tracing"))]
    pub(crate) fn span(&self) -> NoSpan {
        NoSpan
    }
}

/// Stands for a span where there is no tracing.
#[cfg(not(feature = "tracing"))]
pub(crate) struct NoSpan;

#[cfg(not(feature = "tracing"))]
impl NoSpan {
    pub(crate) fn in_scope<T>(&self, run: impl FnOnce() -> T) -> T {
        run()
    }
}
