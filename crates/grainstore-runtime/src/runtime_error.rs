//! What a look-up or a teardown can end in, by what its caller would do about it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use grainstore::{DeviceId, HookError, ReleaseError};

use crate::{BackendError, SpecError};

/// An error of [`Runtime`](crate::Runtime) or [`BackendCache`](crate::BackendCache).
///
/// Cheap to clone: those who waited for one build all get the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The backend said no: the source does not compile, the driver is missing, the device is lost.
    /// [`backend_error`](RuntimeError::backend_error) gives its own error.
    Backend {
        /// The backend's name.
        backend: Arc<str>,
        /// The kernel that was asked for, if one was.
        kernel: Option<Arc<str>>,
        /// What the backend said.
        error: Arc<BackendError>,
    },
    /// The spec can't be used, or could not be made.
    Spec(Arc<dyn Error + Send + Sync>),
    /// The handle is of an earlier life of its device, or the device went away during the build.
    /// Ask for the devices again.
    DeviceDestroyed {
        /// The device.
        device: DeviceId,
    },
    /// The device's modules are still in use, so its context was not destroyed. Let them go and
    /// call again, or abandon them.
    DeviceHeld {
        /// The device.
        device: DeviceId,
        /// The kernels that are pinned or still being built.
        kernels: Vec<String>,
    },
    /// The device is being torn down by a call that this one is inside of, or by another thread
    /// that took longer than the bound.
    TeardownRunning {
        /// The device.
        device: DeviceId,
    },
    /// There is no such device now.
    NoDevice {
        /// What was asked for.
        device: DeviceId,
    },
    /// The handle was given out by another runtime.
    ForeignDevice {
        /// The device.
        device: DeviceId,
    },
    /// The runtime was shut down; no driver is touched any more.
    ShutDown,
    /// The shutdown's bound was over before everything had ended. What is named here was abandoned:
    /// it is never released, and no driver is touched for it again.
    ShutdownIncomplete {
        /// Builds, loads and releases that are still running.
        running: Vec<String>,
        /// Kernels that were still pinned.
        pinned: Vec<String>,
    },
    /// This is a child of the process that made the runtime, and the driver's state is the
    /// parent's. Make a runtime of its own after the fork.
    Forked {
        /// The process that it belongs to.
        parent: u32,
    },
    /// A listener of the hooks failed. What was to be done was done all the same.
    Hook(HookError),
    /// A driver complained about a release. The module counts as released all the same.
    Release(ReleaseError),
    /// It can't be put together like that.
    Setup {
        /// What is wrong, and with which setting.
        message: String,
    },
    /// Every place of the bounded cache is taken. Let go of some pins, wait, and ask again.
    Busy {
        /// How many kernels the cache may hold.
        capacity: usize,
        /// Of these, pinned.
        pinned: usize,
        /// Not pinned, but not idle.
        busy: usize,
        /// Being built.
        building: usize,
        /// Out of the cache, and not yet released.
        retired: usize,
    },
    /// The build asks for a kernel whose own build waits for it.
    Cycle(grainstore::Error),
    /// A task's build or teardown was dropped before it began: no thread could be started, or
    /// whoever was given it by [`Settings::blocking`](crate::Settings::blocking) is at its end.
    NotRun,
    /// Any other answer of the cache: the build panicked, or its kernel was removed meanwhile.
    Cache(grainstore::Error),
}

impl RuntimeError {
    pub(crate) fn backend(backend: &str, kernel: Option<&str>, error: BackendError) -> Self {
        Self::Backend {
            backend: Arc::from(backend),
            kernel: kernel.map(Arc::from),
            error: Arc::new(error),
        }
    }

    pub(crate) fn setup(message: impl fmt::Display) -> Self {
        Self::Setup { message: message.to_string() }
    }

    /// What the backend said, if it is a backend's error.
    #[must_use]
    pub fn backend_error(&self) -> Option<&BackendError> {
        match self {
            Self::Backend { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The compiler's log, if the source did not compile.
    #[must_use]
    pub fn compile_log(&self) -> Option<&str> {
        match self.backend_error() {
            Some(BackendError::Compile { log }) => Some(log),
            _ => None,
        }
    }
}

impl From<grainstore::Error> for RuntimeError {
    /// The walk's own error comes back out of the cache as it went in.
    fn from(error: grainstore::Error) -> Self {
        match error {
            grainstore::Error::DeviceDestroyed { device } => Self::DeviceDestroyed { device },
            grainstore::Error::Busy { capacity, pinned, busy, building, retired } => {
                Self::Busy { capacity, pinned, busy, building, retired }
            }
            cycle @ grainstore::Error::Cycle { .. } => Self::Cycle(cycle),
            other => match other.downcast_ref::<Self>() {
                Some(own) => own.clone(),
                None => Self::Cache(other),
            },
        }
    }
}

impl From<HookError> for RuntimeError {
    /// A cache that listens reports a release as its listener's failure: it is told as what it is.
    fn from(error: HookError) -> Self {
        match &error {
            HookError::Listener(source) => match source.downcast_ref::<ReleaseError>() {
                Some(release) => Self::Release(release.clone()),
                None => Self::Hook(error),
            },
            _ => Self::Hook(error),
        }
    }
}

impl From<SpecError> for RuntimeError {
    fn from(error: SpecError) -> Self {
        Self::Spec(Arc::new(error))
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backend { backend, kernel: Some(kernel), error } => {
                write!(f, "{backend}: kernel `{kernel}`: {error}")
            }
            Self::Backend { backend, kernel: None, error } => write!(f, "{backend}: {error}"),
            Self::Spec(error) => write!(f, "{error}"),
            Self::DeviceDestroyed { device } => write!(
                f,
                "device {device} was destroyed or reset since this handle was given out; \
                 ask for the devices again"
            ),
            Self::DeviceHeld { device, kernels } => write!(
                f,
                "device {device} is not destroyed, its modules are in use: {}; \
                 drop their pins and call again, or abandon them",
                list(kernels)
            ),
            Self::TeardownRunning { device } => {
                write!(f, "device {device} is being destroyed by another call; try again later")
            }
            Self::NoDevice { device } => write!(f, "there is no device {device}"),
            Self::ForeignDevice { device } => {
                write!(f, "this handle of device {device} belongs to another runtime")
            }
            Self::ShutDown => f.write_str("the runtime was shut down"),
            Self::ShutdownIncomplete { running, pinned } => {
                f.write_str("shut down, but not everything had ended in time; ")?;
                match (running.is_empty(), pinned.is_empty()) {
                    (false, false) => {
                        write!(f, "still running: {}; pinned: {}", list(running), list(pinned))
                    }
                    (false, true) => write!(f, "still running: {}", list(running)),
                    _ => write!(f, "abandoned while pinned: {}", list(pinned)),
                }
            }
            Self::Forked { parent } => write!(
                f,
                "the driver's state belongs to process {parent}, which this one was forked from; \
                 make a runtime of its own after the fork"
            ),
            Self::Hook(error) => write!(f, "{error}"),
            Self::Release(error) => write!(f, "{error}"),
            Self::Setup { message } => f.write_str(message),
            Self::Busy { capacity, pinned, busy, building, retired } => write!(
                f,
                "all {capacity} places for kernels are taken: {pinned} pinned, {busy} busy, \
                 {building} being built, {retired} retired; drop some pins and ask again"
            ),
            Self::NotRun => f.write_str(
                "what was asked for was not run: no thread could be started for it, or the \
                 executor that was given to `blocking` has dropped it",
            ),
            Self::Cycle(error) | Self::Cache(error) => write!(f, "{error}"),
        }
    }
}

/// Names for a message, which stays readable when there are hundreds.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

impl Error for RuntimeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Backend { error, .. } => Some(&**error),
            // These say what the error they hold says, so the next one in line is its cause.
            Self::Spec(error) => error.source(),
            Self::Hook(error) => error.source(),
            Self::Release(error) => error.source(),
            Self::Cycle(error) | Self::Cache(error) => error.source(),
            _ => None,
        }
    }
}
