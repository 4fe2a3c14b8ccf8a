//! What the battery of tests that every backend passes has to know of this one.

use std::path::Path;
use std::sync::LazyLock;

use grainstore_conformance::{BoxError, Cannot, Subject};
use grainstore_runtime::{BackendError, KernelSpec, Language};
use grainstore_wgpu::{WgpuBackend, WgpuModule};
use wgpu::{Adapter, Backends};

use crate::common::{adapters, device, launch};

/// wgpu over one of the APIs below it.
pub(crate) struct Wgpu {
    adapter: LazyLock<Option<Adapter>, Box<dyn FnOnce() -> Option<Adapter> + Send>>,
}

impl Wgpu {
    pub(crate) fn over(backends: Backends) -> Self {
        let find = move || adapters(backends).into_iter().next();
        Self { adapter: LazyLock::new(Box::new(find)) }
    }
}

fn spec(constant: Option<u32>, add: &str) -> KernelSpec {
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
        override number: u32 = 0;
        @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {{
            if id.x < arrayLength(&numbers) {{ numbers[id.x] += {add}; }}
        }}"
    );
    let spec = KernelSpec::builder("add", Language::Wgsl).source(source).entry("add");
    match constant {
        Some(number) => spec.constant("number", number.to_string()).build(),
        None => spec.build(),
    }
    .unwrap()
}

impl Subject for Wgpu {
    type Backend = WgpuBackend;

    fn name(&self) -> &str {
        "wgpu"
    }

    fn backend(&self) -> Result<WgpuBackend, BackendError> {
        let Some(adapter) = self.adapter.clone() else {
            return Err(BackendError::missing(
                "an adapter",
                "install a driver (mesa-vulkan-drivers)",
            ));
        };
        let make = move || Ok::<_, BackendError>(device(&adapter));
        Ok(WgpuBackend::builder().device_with(make).build())
    }

    fn kernel(&self, add: u32) -> KernelSpec {
        spec(None, &format!("{add}u"))
    }

    fn wrong(&self) -> KernelSpec {
        spec(None, "mistake")
    }

    fn launch(&self, module: &WgpuModule, input: &[u32]) -> Result<Vec<u32>, BoxError> {
        Ok(launch(module, "add", input))
    }

    fn live_handles(&self, backend: &WgpuBackend) -> usize {
        backend.live_handles()
    }

    fn with_header(&self, _: u32) -> Result<KernelSpec, Cannot> {
        Err(Cannot::because("WGSL has no headers"))
    }

    fn with_define(&self, _: u32) -> Result<KernelSpec, Cannot> {
        Err(Cannot::because("WGSL has no preprocessor"))
    }

    fn with_option(&self, _: u32) -> Result<KernelSpec, Cannot> {
        Err(Cannot::because("no option of a pipeline is a number that a shader sees"))
    }

    fn with_constant(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Ok(spec(Some(add), "number"))
    }

    fn artifact(&self, _: &WgpuBackend) -> Result<(), Cannot> {
        Err(Cannot::because("the driver puts nothing into its pipeline caches, or has none"))
    }

    fn without_library(&self, _: &Path) -> Result<WgpuBackend, Cannot> {
        Err(Cannot::because("the application has wgpu find the driver, and gives the device"))
    }
}
