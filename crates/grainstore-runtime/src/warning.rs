//! What went wrong without stopping anybody, and the one who wants to hear of it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use grainstore::ReleaseError;

use crate::StoreError;

/// Something that made the runtime slower or left a handle behind, but gave nobody a wrong answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Warning<'a> {
    /// A store could not do its work. Said once for each store; the run goes on without it.
    Store {
        /// The store's name.
        store: &'a str,
        /// In the store's words.
        error: &'a StoreError,
    },
    /// A store has an artifact and won't hand it out. The kernel was built afresh.
    Withheld {
        /// The store's name.
        store: &'a str,
        /// The kernel's name.
        kernel: &'a str,
        /// In the store's words.
        error: &'a StoreError,
    },
    /// A loader refused the bytes of an artifact. It was dropped, and the kernel built afresh.
    InvalidArtifact {
        /// The store that it came from.
        store: &'a str,
        /// The kernel's name.
        kernel: &'a str,
        /// In the loader's words.
        reason: &'a str,
    },
    /// An artifact could not be loaded, though its bytes may be good. It was kept, and the kernel
    /// built afresh.
    LoadFailed {
        /// The store that it came from.
        store: &'a str,
        /// The kernel's name.
        kernel: &'a str,
        /// In the loader's words.
        reason: &'a str,
    },
    /// A driver complained about a release that no call was there to answer for.
    Release {
        /// The backend's name.
        backend: &'a str,
        /// What it said.
        error: &'a ReleaseError,
    },
}

impl fmt::Display for Warning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { store, error } => {
                write!(f, "the store `{store}` does not work: {error}; going on without it")
            }
            Self::Withheld { store, kernel, error } => {
                write!(f, "`{kernel}` is not taken from the store `{store}`: {error}")
            }
            Self::InvalidArtifact { store, kernel, reason } => write!(
                f,
                "the artifact of `{kernel}` in the store `{store}` is invalid ({reason}); \
                 it is built afresh"
            ),
            Self::LoadFailed { store, kernel, reason } => write!(
                f,
                "the artifact of `{kernel}` in the store `{store}` could not be loaded \
                 ({reason}); it is kept, and the kernel is built afresh"
            ),
            Self::Release { backend, error } => {
                write!(f, "{backend}: releasing a module failed: {error}")
            }
        }
    }
}

/// Where warnings go. Without a listener they go nowhere: a library does not print.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Option<Listener>);

type Listener = Arc<dyn Fn(&Warning<'_>) + Send + Sync>;

impl Warnings {
    pub(crate) fn to(listener: impl Fn(&Warning<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// A listener that panics is not the build's fault, and does not fail it.
    pub(crate) fn tell(&self, warning: &Warning<'_>) {
        if let Some(listener) = &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| listener(warning)));
        }
    }
}
