//! What the conformance battery is told of this backend, on a real driver or on the fake one.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use grainstore_conformance::{BoxError, Cannot, Subject};
use grainstore_cuda::{CudaBackend, CudaBackendBuilder, CudaModule};
use grainstore_runtime::{Backend, BackendError, KernelSpec, KernelSpecBuilder, Language, Target};

use super::driver::Driver;
use super::fake::Fake;

/// A block a number. The kernel is named for what it adds: so the fake driver, which runs no code,
/// knows what to do.
const BODY: &str = "\
#define NAME_OF(number) add_##number
#define NAME(number) NAME_OF(number)
#define VALUE_OF(number) number##u
#define VALUE(number) VALUE_OF(number)
extern \"C\" __global__ void NAME(ADD)(const unsigned *in, unsigned *out) {
    out[blockIdx.x] = in[blockIdx.x] + VALUE(ADD);
}
";

pub(crate) struct Cuda {
    driver: fn() -> PathBuf,
    opened: OnceLock<Driver>,
}

impl Cuda {
    /// On the system's driver.
    pub(crate) fn real() -> Self {
        let path = || {
            let chosen = std::env::var_os("GRAINSTORE_CUDA_LIBRARY").map(PathBuf::from);
            let name = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
            chosen.unwrap_or_else(|| name.into())
        };
        Self { driver: path, opened: OnceLock::new() }
    }

    /// On the fake one, made when it is first needed.
    pub(crate) fn fake() -> Self {
        static FAKE: OnceLock<Result<Fake, String>> = OnceLock::new();
        let path = || match FAKE.get_or_init(|| Fake::new().inspect(Fake::be_strict)) {
            Ok(fake) => fake.path().to_owned(),
            Err(reason) => reason.into(),
        };
        Self { driver: path, opened: OnceLock::new() }
    }

    fn builder(&self) -> CudaBackendBuilder {
        let builder = CudaBackend::builder();
        match super::nvrtcs().swap_remove(0) {
            Some(path) => builder.nvrtc(path),
            None => builder,
        }
    }

    fn spec(&self, source: &str) -> KernelSpecBuilder {
        KernelSpec::builder("add", Language::CudaCpp).source(source)
    }
}

fn built(spec: KernelSpecBuilder) -> Result<KernelSpec, Cannot> {
    spec.build().map_err(|error| Cannot::because(error.to_string()))
}

impl Subject for Cuda {
    type Backend = CudaBackend;

    fn name(&self) -> &str {
        "cuda"
    }

    fn backend(&self) -> Result<CudaBackend, BackendError> {
        let backend = self.builder().library((self.driver)()).build();
        // The kernels are CUDA C++: without NVRTC there is as little to see as without a driver.
        match backend.toolchain_for(&super::hopper(), &self.kernel(0)) {
            Err(missing @ BackendError::Missing { .. }) => Err(missing),
            _ => Ok(backend),
        }
    }

    fn kernel(&self, add: u32) -> KernelSpec {
        let source = format!("#define ADD {add}\n{BODY}");
        self.spec(&source).entry(format!("add_{add}")).build().unwrap()
    }

    fn wrong(&self) -> KernelSpec {
        self.spec("extern \"C\" __global__ void add_0(const unsigned *in) { in[0] = out; }")
            .build()
            .unwrap()
    }

    fn launch(&self, module: &CudaModule, input: &[u32]) -> Result<Vec<u32>, BoxError> {
        let driver = self.opened.get_or_init(|| Driver::open(&(self.driver)()));
        let function = module.function(&module.kernels()[0])?;
        Ok(driver.launch(module, function, input)?)
    }

    fn live_handles(&self, backend: &CudaBackend) -> usize {
        backend.live_handles()
    }

    fn with_header(&self, add: u32) -> Result<KernelSpec, Cannot> {
        let source = format!("#include \"add.h\"\n{BODY}");
        built(self.spec(&source).header("add.h", format!("#define ADD {add}\n")))
    }

    fn with_define(&self, add: u32) -> Result<KernelSpec, Cannot> {
        built(self.spec(BODY).define("ADD", add.to_string()))
    }

    fn with_option(&self, add: u32) -> Result<KernelSpec, Cannot> {
        built(self.spec(BODY).option(format!("-DADD={add}")))
    }

    fn with_constant(&self, _: u32) -> Result<KernelSpec, Cannot> {
        Err(Cannot::because("CUDA has no specialization constants"))
    }

    fn without_library(&self, nowhere: &Path) -> Result<CudaBackend, Cannot> {
        Ok(CudaBackend::builder().library(nowhere).nvrtc(nowhere).build())
    }

    fn targets(&self) -> Vec<Target> {
        ["sm_75", "sm_90a", "compute_80"].map(Target::new).into()
    }
}
