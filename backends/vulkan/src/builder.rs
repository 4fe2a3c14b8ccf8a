//! How a [`VulkanBackend`] is told what it should be like.

use std::path::PathBuf;

use crate::backend::VulkanBackend;
use crate::existing::ExistingDevice;

/// What the builder collects.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) library: Option<PathBuf>,
}

/// Collects the settings of a [`VulkanBackend`].
#[derive(Debug, Default)]
#[must_use]
pub struct VulkanBackendBuilder {
    settings: Settings,
    given: Vec<ExistingDevice>,
}

impl VulkanBackendBuilder {
    /// Vulkan's loader library, or a driver's own. Comes before `GRAINSTORE_VULKAN_LIBRARY` and the
    /// system's.
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.library = Some(path.into());
        self
    }

    /// A device that your application has made already. With one or more of them, these are all the
    /// devices, numbered as they are given, and no library is looked for.
    pub fn device(mut self, device: ExistingDevice) -> Self {
        self.given.push(device);
        self
    }

    /// The backend. Touches nothing yet.
    #[must_use]
    pub fn build(self) -> VulkanBackend {
        VulkanBackend::with(self.settings, self.given)
    }
}
