//! What a look-up, a release and a builder can answer besides a value.

use std::error::Error as StdError;
use std::fmt;

use crate::DeviceId;
use crate::sync::Arc;

/// Any error, boxed: what a build's or a release's own error is turned into.
pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a look-up gave no value. Cheap to clone: all waiters of a build get the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The build failed. [`Error::downcast_ref`] and `source()` reach the original error.
    Build(Arc<dyn StdError + Send + Sync>),
    /// The build panicked, with this message.
    Panicked {
        /// The panic's message, or a note that it had none.
        message: String,
    },
    /// The build asked for a key whose build waits for this very build.
    Cycle {
        /// The name of the cache in which the key was asked for.
        cache: Arc<str>,
    },
    /// The device was evicted while the value was being built.
    DeviceDestroyed {
        /// The device.
        device: DeviceId,
    },
    /// The borrowing cache was cleared while the value was being built.
    Cleared,
    /// The key was removed while its value was being built.
    Removed,
    /// The build took so long that another caller built in its place, and no value is there now.
    Superseded,
    /// Every place is taken by something that cannot be evicted now. The parts add up to the
    /// capacity.
    Busy {
        /// The cache's capacity.
        capacity: usize,
        /// Resident values that somebody pins.
        pinned: usize,
        /// Resident values that nobody pins, and that `idle` calls busy.
        busy: usize,
        /// Values being built.
        building: usize,
        /// Values that left the cache and are not released yet.
        retired: usize,
    },
}

impl Error {
    /// The original error of a failed build, if it is an `E`.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match self {
            Self::Build(error) => error.downcast_ref::<E>(),
            _ => None,
        }
    }

    /// Whether this is [`Error::Busy`]: worth another try when something is unpinned.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => write!(f, "the build failed: {error}"),
            Self::Panicked { message } => write!(f, "the build panicked: {message}"),
            Self::Cycle { cache } => {
                write!(f, "the build waits for itself, through a key of the cache `{cache}`")
            }
            Self::DeviceDestroyed { device } => write!(f, "device {device} was destroyed"),
            Self::Cleared => f.write_str("the cache was cleared during the build"),
            Self::Removed => f.write_str("the key was removed during the build"),
            Self::Superseded => f.write_str("another caller built in place of this late build"),
            Self::Busy { capacity, pinned, busy, building, retired } => write!(
                f,
                "all {capacity} places are taken: {pinned} pinned, {busy} busy, {building} being \
                 built, {retired} not yet released"
            ),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Build(error) => Some(&**error),
            _ => None,
        }
    }
}

/// Why a value's release did not go well. The value counts as released all the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The release callback returned this error.
    Failed(Arc<dyn StdError + Send + Sync>),
    /// The release callback, or the value's own drop, panicked with this message.
    Panicked {
        /// The panic's message, or a note that it had none.
        message: String,
    },
    /// Waiting here would wait for ever: the caller is itself inside a build, a release or an
    /// `idle` of the same cache, and something is still pending.
    WouldDeadlock,
}

impl ReleaseError {
    /// The original error of a failed release, if it is an `E`.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match self {
            Self::Failed(error) => error.downcast_ref::<E>(),
            _ => None,
        }
    }
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "the release failed: {error}"),
            Self::Panicked { message } => write!(f, "the release panicked: {message}"),
            Self::WouldDeadlock => f.write_str(
                "waiting for releases inside a build, a release or an idle of the same cache would \
                 never end",
            ),
        }
    }
}

impl StdError for ReleaseError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            _ => None,
        }
    }
}
