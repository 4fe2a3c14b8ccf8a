//! The backends that this program is built with: the one place that names them all.

use std::sync::Arc;

use grainstore_host::HostBackend;
use grainstore_opencl::OpenClBackend;
use grainstore_runtime::{Backend, Runtime, RuntimeBuilder};

use crate::doctor::{BackendReport, Launch, examine};
use crate::manifest::KnownBackend;
#[cfg(feature = "wgpu")]
use crate::wgpu_device;

/// Those that this program can be built with and was not. Each is a feature of the same name.
pub(crate) const LEFT_OUT: &[&str] = &[
    #[cfg(not(feature = "cuda"))]
    "cuda",
    #[cfg(not(feature = "vulkan"))]
    "vulkan",
    #[cfg(not(feature = "wgpu"))]
    "wgpu",
];

/// What to say about one of those.
pub(crate) fn left_out(name: &str) -> String {
    format!("this program was built without {name}: build it with `--features {name}`")
}

/// One of each. Making them touches no driver.
pub(crate) struct Backends {
    host: Arc<HostBackend>,
    all: Vec<Box<dyn Built>>,
}

/// A backend that this program is built with, whatever its modules are.
trait Built {
    fn known(&self) -> KnownBackend;
    fn join(&self, runtime: RuntimeBuilder) -> RuntimeBuilder;
    fn examine(&self) -> BackendReport;
}

impl<B: Launch> Built for Arc<B> {
    fn known(&self) -> KnownBackend {
        KnownBackend {
            name: self.name().to_owned(),
            languages: self.languages().to_owned(),
            compiles_ahead: self.compiles_ahead(),
        }
    }

    fn join(&self, runtime: RuntimeBuilder) -> RuntimeBuilder {
        runtime.backend(Self::clone(self))
    }

    fn examine(&self) -> BackendReport {
        examine(&**self)
    }
}

impl Backends {
    pub(crate) fn new() -> Self {
        let host = Arc::new(HostBackend::new());
        let all: Vec<Box<dyn Built>> = vec![
            Box::new(Arc::clone(&host)),
            Box::new(Arc::new(OpenClBackend::new())),
            #[cfg(feature = "cuda")]
            Box::new(Arc::new(grainstore_cuda::CudaBackend::new())),
            #[cfg(feature = "vulkan")]
            Box::new(Arc::new(grainstore_vulkan::VulkanBackend::new())),
            #[cfg(feature = "wgpu")]
            Box::new(Arc::new(wgpu_device::backend())),
        ];
        Self { host, all }
    }

    /// What a manifest may ask of each.
    pub(crate) fn known(&self) -> Vec<KnownBackend> {
        self.all.iter().map(|backend| backend.known()).collect()
    }

    /// A runtime with all of them.
    pub(crate) fn runtime(&self) -> RuntimeBuilder {
        self.all.iter().fold(Runtime::builder(), |runtime, backend| backend.join(runtime))
    }

    /// Each of them, asked everything.
    pub(crate) fn examine(&self) -> Vec<BackendReport> {
        self.all.iter().map(|backend| backend.examine()).collect()
    }

    /// What ends the compilers that run as processes of their own.
    pub(crate) fn stop(&self) -> impl Fn() + Send + 'static {
        let host = Arc::clone(&self.host);
        move || host.stop()
    }
}
