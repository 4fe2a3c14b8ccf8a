//! How an [`OpenClBackend`] is told what it should be like.

use std::path::PathBuf;
use std::sync::Arc;

use grainstore_runtime::BackendError;
use opencl_sys::cl_context;

use crate::backend::OpenClBackend;
use crate::context::Context;
use crate::contexts::Sharing;
use crate::driver::Driver;
use crate::found::Found;

/// What the builder collects.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) library: Option<PathBuf>,
    pub(crate) allowed: Vec<String>,
}

/// Collects the settings of an [`OpenClBackend`].
#[derive(Debug, Default)]
#[must_use]
pub struct OpenClBackendBuilder {
    settings: Settings,
    shared: bool,
}

impl OpenClBackendBuilder {
    /// OpenCL's loader library, or a driver's own. Comes before `GRAINSTORE_OPENCL_LIBRARY`,
    /// `OPENCL_DYLIB_PATH` and the system's.
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.library = Some(path.into());
        self
    }

    /// Takes this option too, letter for letter. You vouch that it has the compiler read no file
    /// whose content may change.
    pub fn allow_option(mut self, option: impl Into<String>) -> Self {
        self.settings.allowed.push(option.into());
        self
    }

    /// One context for all devices of a platform, so that they share buffers. Without it, each
    /// device has its own.
    pub fn shared_contexts(mut self) -> Self {
        self.shared = true;
        self
    }

    /// The backend. Touches nothing yet.
    #[must_use]
    pub fn build(self) -> OpenClBackend {
        let sharing = if self.shared { Sharing::Platform } else { Sharing::Nothing };
        OpenClBackend::with(self.settings, None, sharing)
    }

    /// A backend in a context that the application already has: its modules are made there, and
    /// work with the application's buffers and queues. The devices are those of the context, in its
    /// order; [`OpenClBackend::device_of`] tells their numbers.
    ///
    /// The context is retained until the backend and its modules are gone. Destroying a device
    /// releases the modules and leaves the context as it is: whoever lost a device makes a new
    /// context, and a new backend for it.
    ///
    /// # Errors
    /// [`BackendError::Missing`] for the library; whatever the driver says.
    ///
    /// # Safety
    /// `context` is a context, live until this returns. It was made through the library that this
    /// backend loads (see [`library`](Self::library)), or through another loader of the same driver.
    pub unsafe fn build_in(self, context: cl_context) -> Result<OpenClBackend, BackendError> {
        let driver = Driver::load(self.settings.library.as_deref())?;
        // SAFETY: the caller's word.
        let (context, handles) = unsafe { Context::of_application(&driver, context) }?;
        let found = Found::of_application(driver, &handles)?;
        Ok(OpenClBackend::with(self.settings, Some(found), Sharing::All(Arc::new(context))))
    }
}
