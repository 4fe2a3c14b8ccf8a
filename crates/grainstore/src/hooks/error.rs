//! What a notification can answer: the first thing that went wrong in it.

use std::any::Any;
use std::error::Error;
use std::fmt;

use crate::contain::panic_message;
use crate::error::BoxError;
use crate::sync::Arc;

/// The first failure of a notification, or of what was cleared within one.
///
/// Whatever it is, every listener has been called.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HookError {
    /// A listener returned this error.
    Listener(Arc<dyn Error + Send + Sync>),
    /// A listener panicked with this message.
    Panicked {
        /// The panic's message, or a note that it had none.
        message: String,
    },
    /// The clear itself failed with this error.
    Clear(Arc<dyn Error + Send + Sync>),
}

impl HookError {
    /// The original error, if it is an `E`, or the first `E` among the errors that caused it.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        std::iter::successors(self.source(), |&error| error.source())
            .find_map(|error| error.downcast_ref())
    }

    /// The error of a clear. One that comes out of a clear within the clear is that clear's own.
    pub(super) fn clear(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(inner) if matches!(*inner, Self::Clear(_)) => *inner,
            Ok(inner) => Self::Clear(Arc::from(inner as BoxError)),
            Err(error) => Self::Clear(Arc::from(error)),
        }
    }

    pub(super) fn panicked(payload: &(dyn Any + Send)) -> Self {
        Self::Panicked { message: panic_message(payload) }
    }
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listener(error) => write!(f, "a teardown listener failed: {error}"),
            Self::Panicked { message } => write!(f, "a teardown listener panicked: {message}"),
            Self::Clear(error) => write!(f, "the clear failed: {error}"),
        }
    }
}

impl Error for HookError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Listener(error) | Self::Clear(error) => Some(&**error),
            Self::Panicked { .. } => None,
        }
    }
}
