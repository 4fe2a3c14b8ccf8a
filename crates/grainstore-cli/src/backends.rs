//! The backends that this program is built with: the one place that names them all.

use std::sync::Arc;

use grainstore_host::HostBackend;
use grainstore_opencl::OpenClBackend;
use grainstore_runtime::{Backend, Runtime, RuntimeBuilder};

use crate::manifest::KnownBackend;

/// One of each. Making them touches no driver.
#[derive(Debug)]
pub(crate) struct Backends {
    pub(crate) host: Arc<HostBackend>,
    pub(crate) opencl: Arc<OpenClBackend>,
}

impl Backends {
    pub(crate) fn new() -> Self {
        Self { host: Arc::new(HostBackend::new()), opencl: Arc::new(OpenClBackend::new()) }
    }

    /// What a manifest may ask of each.
    pub(crate) fn known(&self) -> Vec<KnownBackend> {
        vec![known(&*self.host), known(&*self.opencl)]
    }

    /// A runtime with all of them.
    pub(crate) fn runtime(&self) -> RuntimeBuilder {
        Runtime::builder().backend(Arc::clone(&self.host)).backend(Arc::clone(&self.opencl))
    }
}

fn known(backend: &impl Backend) -> KnownBackend {
    KnownBackend { name: backend.name().to_owned(), languages: backend.languages().to_owned() }
}
