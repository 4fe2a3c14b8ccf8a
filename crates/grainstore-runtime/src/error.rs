//! What can go wrong in a backend, by what a caller would do about it.

use std::error::Error;
use std::fmt;

use grainstore::DeviceId;

use crate::{KernelSpec, Target};

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

    /// [`BackendError::NoDevice`]: there are only `there`. What was asked for is a [`DeviceId`], or
    /// whatever else devices are known by.
    #[must_use]
    pub fn no_device(asked: impl fmt::Display, there: impl IntoIterator<Item = DeviceId>) -> Self {
        let there: Vec<_> = there.into_iter().map(|device| device.to_string()).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        Self::NoDevice { message: format!("there is no device {asked}; there are: {there}") }
    }

    /// [`BackendError::NoDevice`]: code for this target is made by its own driver, and no device
    /// here has it.
    #[must_use]
    pub fn no_target(target: &Target) -> Self {
        let message = format!("there is no device for the target `{}`", target.as_str());
        Self::NoDevice { message }
    }

    /// [`BackendError::Unsupported`]: the spec is in a language that is not among the backend's. The
    /// hint says which are.
    #[must_use]
    pub fn wrong_language(spec: &KernelSpec, hint: impl Into<String>) -> Self {
        let what = format!("kernel `{}` is written in {}", spec.name(), spec.language());
        Self::unsupported(what, hint)
    }

    /// [`BackendError::Unsupported`]: something of this spec, such as "the define `A`".
    #[must_use]
    pub fn unfit(spec: &KernelSpec, what: impl fmt::Display, hint: impl Into<String>) -> Self {
        Self::unsupported(format!("{what} of kernel `{}`", spec.name()), hint)
    }

    /// [`BackendError::Unsupported`]: one of the options of the kernel of that name.
    #[must_use]
    pub fn refused_option(kernel: &str, option: &str, hint: impl Into<String>) -> Self {
        let what = format!("the option `{option}` of kernel `{kernel}` is refused");
        Self::unsupported(what, hint)
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

#[cfg(test)]
mod tests {
    use grainstore::Family;

    use super::*;

    #[test]
    fn a_missing_device_is_told_with_those_that_are_there() {
        let device = |index| DeviceId::new(Family::HOST, index);
        let text = BackendError::no_device(device(7), [device(0), device(1)]).to_string();
        assert_eq!(text, "there is no device host:7; there are: host:0, host:1");
        let text = BackendError::no_device(device(7), []).to_string();
        assert_eq!(text, "there is no device host:7; there are: none");
    }
}
