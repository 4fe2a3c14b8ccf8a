//! Why a check did not pass.

use std::error::Error;

use crate::{BoxError, Cannot};

/// What ends a check before its end.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The driver, the library or a device is not here.
    Absent(String),
    /// The backend cannot do what is checked, and says so.
    Cannot(String),
    /// The backend does it wrong.
    Failed(String),
}

/// A check, or a step of one.
pub(crate) type Check<T = ()> = Result<T, Trouble>;

impl Trouble {
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::Failed(what.into())
    }

    /// The same, with where it happened.
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Self::Failed(what) => Self::Failed(format!("{place}: {what}")),
            other => other,
        }
    }

    /// In words, whatever it is.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Absent(what) | Self::Cannot(what) | Self::Failed(what) => what,
        }
    }

    pub(crate) fn launch(error: &BoxError) -> Self {
        Self::Failed(format!("a launch failed: {error}"))
    }
}

/// An error that a check did not ask for is a failure.
impl<E: Error> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Cannot> for Trouble {
    fn from(cannot: Cannot) -> Self {
        Self::Cannot(cannot.reason().to_owned())
    }
}

/// Ends the check with this text unless it holds.
macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err($crate::trouble::Trouble::failed(format!($($text)+)));
        }
    };
}

pub(crate) use ensure;
