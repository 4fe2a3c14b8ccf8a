//! Why the check of a kernel did not hold.

use std::error::Error;
use std::fmt;

use grainstore_runtime::BackendError;

use crate::Mismatch;

/// Why a kernel could not be launched, or computed something else.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaseError {
    /// The variant lacks what the launch depends on.
    Variant(String),
    /// The backend's module does not give what was asked of it.
    Backend(BackendError),
    /// A call of the driver failed.
    Driver {
        /// The call.
        call: &'static str,
        /// What came back.
        message: String,
    },
    /// It ran, and wrote past the end of its output.
    Overrun {
        /// How far: one is the place behind the last element.
        past: usize,
    },
    /// It ran, and the result is wrong.
    Wrong {
        /// The sizes of the launch.
        problem: String,
        /// The first wrong value.
        mismatch: Mismatch,
    },
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variant(message) => f.write_str(message),
            Self::Backend(error) => error.fmt(f),
            Self::Driver { call, message } => write!(f, "{call} failed: {message}"),
            Self::Overrun { past } => {
                write!(f, "the kernel wrote {past} elements past the end of its output")
            }
            Self::Wrong { problem, mismatch } => write!(f, "at {problem}: {mismatch}"),
        }
    }
}

impl Error for CaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Backend(error) => Some(error),
            Self::Wrong { mismatch, .. } => Some(mismatch),
            Self::Variant(_) | Self::Driver { .. } | Self::Overrun { .. } => None,
        }
    }
}

impl From<BackendError> for CaseError {
    fn from(error: BackendError) -> Self {
        Self::Backend(error)
    }
}
