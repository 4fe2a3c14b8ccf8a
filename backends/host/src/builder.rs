//! How a [`HostBackend`] is told what it should be like.

use std::path::PathBuf;
use std::time::Duration;

use crate::backend::HostBackend;

/// What the builder collects for compiling.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Where private folders are made, if not in the system's place.
    pub(crate) scratch: Option<PathBuf>,
    /// How long the compiler may take.
    pub(crate) deadline: Duration,
    /// Options that the user vouches for.
    pub(crate) allowed: Vec<String>,
}

/// Collects the settings of a [`HostBackend`].
#[derive(Debug)]
#[must_use]
pub struct HostBackendBuilder {
    compiler: Option<PathBuf>,
    settings: Settings,
}

impl Default for HostBackendBuilder {
    fn default() -> Self {
        let settings =
            Settings { scratch: None, deadline: Duration::from_secs(300), allowed: Vec::new() };
        Self { compiler: None, settings }
    }
}

impl HostBackendBuilder {
    /// The compiler: a path, or a name to look for in `PATH`. Comes before `$CC` and all others.
    pub fn compiler(mut self, path: impl Into<PathBuf>) -> Self {
        self.compiler = Some(path.into());
        self
    }

    /// How long one run of the compiler may take before it is killed. The default is five minutes.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// The folder in which private working folders are made. The default is the system's own for
    /// temporary files.
    pub fn scratch_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.scratch = Some(folder.into());
        self
    }

    /// Takes this option too, letter for letter. You vouch that it has the compiler read no file
    /// whose content may change, and write none.
    pub fn allow_option(mut self, option: impl Into<String>) -> Self {
        self.settings.allowed.push(option.into());
        self
    }

    /// The backend. Touches nothing yet.
    #[must_use]
    pub fn build(self) -> HostBackend {
        HostBackend::with(self.compiler, self.settings)
    }
}
