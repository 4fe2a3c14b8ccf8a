//! How a [`CudaBackend`] is told what it should be like.

use std::path::PathBuf;

use grainstore_runtime::BackendError;

use crate::backend::CudaBackend;
use crate::found::Found;
use crate::module::RawHandle;
use crate::target::{Code, Features};

/// What the builder collects.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) nvrtc: Option<PathBuf>,
    pub(crate) library: Option<PathBuf>,
    pub(crate) allowed: Vec<String>,
    pub(crate) code: Code,
    pub(crate) features: Features,
}

/// Collects the settings of a [`CudaBackend`].
#[derive(Debug)]
#[must_use]
pub struct CudaBackendBuilder {
    settings: Settings,
}

impl Default for CudaBackendBuilder {
    fn default() -> Self {
        let settings = Settings {
            nvrtc: None,
            library: None,
            allowed: Vec::new(),
            code: Code::Cubin,
            features: Features::Common,
        };
        Self { settings }
    }
}

impl CudaBackendBuilder {
    /// NVRTC's library, or the folder that it is in. Comes before `GRAINSTORE_NVRTC_LIBRARY`, the
    /// toolkit's and the system's.
    pub fn nvrtc(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.nvrtc = Some(path.into());
        self
    }

    /// The driver's library. Comes before `GRAINSTORE_CUDA_LIBRARY` and the system's.
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.library = Some(path.into());
        self
    }

    /// The form that kernels for this machine's devices are compiled to. [`Code::Cubin`] if it is not
    /// set.
    pub fn code(mut self, code: Code) -> Self {
        self.settings.code = code;
        self
    }

    /// What kernels for this machine's devices may use. [`Features::Common`] if it is not set.
    pub fn features(mut self, features: Features) -> Self {
        self.settings.features = features;
        self
    }

    /// Takes this option of NVRTC's too, letter for letter. You vouch that it has the compiler read
    /// no file whose content may change.
    pub fn allow_option(mut self, option: impl Into<String>) -> Self {
        self.settings.allowed.push(option.into());
        self
    }

    /// The backend. Touches nothing yet.
    #[must_use]
    pub fn build(self) -> CudaBackend {
        CudaBackend::with(self.settings, None)
    }

    /// A backend in a context that the application already has: its modules are loaded there, and
    /// work with the application's memory and streams. It has one device, the context's, under its
    /// usual number.
    ///
    /// Whoever uses the primary context of a device, as most libraries do, needs none of this:
    /// [`build`](Self::build) does as well.
    ///
    /// # Errors
    /// [`BackendError::Missing`] for the driver; whatever the driver says.
    ///
    /// # Safety
    /// `context` is a `CUcontext` of the driver that this backend loads (see
    /// [`library`](Self::library)). It is destroyed no sooner than the backend and its modules are gone.
    pub unsafe fn build_in(self, context: RawHandle) -> Result<CudaBackend, BackendError> {
        // SAFETY: the caller's word.
        let found = unsafe { Found::of_application(&self.settings, context) }?;
        Ok(CudaBackend::with(self.settings, Some(found)))
    }
}
