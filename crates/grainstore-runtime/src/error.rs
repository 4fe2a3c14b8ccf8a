//! What can go wrong in a backend, by what a caller would do about it.

use std::error::Error;
use std::fmt;

/// An error of a backend. Its text says what failed, where, and what would help.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackendError {
    /// A driver, a library or a compiler is not installed.
    Missing {
        /// What was looked for: `libOpenCL.so.1`, `cc`.
        what: String,
        /// The package or the variable that would help.
        hint: String,
    },
    /// There is no device of that index.
    NoDevice {
        /// What was asked for, and what there is.
        message: String,
    },
    /// The source does not compile.
    Compile {
        /// The compiler's own log.
        log: String,
    },
    /// The module has no function of that name.
    NoEntryPoint {
        /// The name that was asked for.
        entry: String,
        /// The names that are there, where they are known.
        available: Vec<String>,
    },
    /// This backend can't do that, or refuses to.
    Unsupported {
        /// What was asked for.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// The loader says that the bytes are no good.
    InvalidArtifact {
        /// In the loader's words.
        reason: String,
    },
    /// The device is gone, and its handles with it.
    DeviceLost {
        /// In the driver's words.
        message: String,
    },
    /// Any other failure of a driver, a compiler or the operating system.
    Failed {
        /// What was tried: the name of the call, the path.
        what: String,
        /// What came back.
        message: String,
    },
}

impl BackendError {
    /// [`BackendError::Missing`].
    #[must_use]
    pub fn missing(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), hint: hint.into() }
    }

    /// [`BackendError::Unsupported`].
    #[must_use]
    pub fn unsupported(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into(), hint: hint.into() }
    }

    /// [`BackendError::Failed`].
    #[must_use]
    pub fn failed(what: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Failed { what: what.into(), message: message.to_string() }
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { what, hint } => write!(f, "{what} was not found: {hint}"),
            Self::NoDevice { message } => f.write_str(message),
            Self::Compile { log } => write!(f, "the source does not compile:\n{}", log.trim_end()),
            Self::NoEntryPoint { entry, available } if available.is_empty() => {
                write!(f, "there is no entry point `{entry}`")
            }
            Self::NoEntryPoint { entry, available } => {
                write!(f, "there is no entry point `{entry}`; there are: {}", available.join(", "))
            }
            Self::Unsupported { what, hint } => write!(f, "{what}: {hint}"),
            Self::InvalidArtifact { reason } => write!(f, "the artifact is invalid: {reason}"),
            Self::DeviceLost { message } => write!(f, "the device is lost: {message}"),
            Self::Failed { what, message } => write!(f, "{what} failed: {message}"),
        }
    }
}

impl Error for BackendError {}
