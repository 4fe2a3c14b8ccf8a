//! The battery of tests that every backend passes.

use std::path::Path;
use std::process::ExitCode;

use grainstore_conformance::{BoxError, Cannot, Subject};
use grainstore_host::{HostBackend, HostModule};
use grainstore_runtime::{BackendError, KernelSpec, KernelSpecBuilder, Language, SpecError};

/// The processor, with the system's C compiler.
struct Host;

/// The kernel; its number is called `ADD`.
const ADD: &str = "\
#include <stdint.h>
void add(uint32_t count, const uint32_t *in, uint32_t *out) {
    for (uint32_t i = 0; i < count; i++) out[i] = in[i] + (ADD);
}
";

fn spec(source: String) -> KernelSpecBuilder {
    KernelSpec::builder("add", Language::C).source(source).entry("add")
}

fn good(spec: Result<KernelSpec, SpecError>) -> KernelSpec {
    spec.unwrap_or_else(|error| panic!("the subject's own kernel: {error}"))
}

impl Subject for Host {
    type Backend = HostBackend;

    fn name(&self) -> &str {
        "host"
    }

    fn backend(&self) -> Result<HostBackend, BackendError> {
        Ok(HostBackend::new())
    }

    fn kernel(&self, add: u32) -> KernelSpec {
        good(spec(format!("#define ADD {add}u\n{ADD}")).build())
    }

    fn wrong(&self) -> KernelSpec {
        good(spec(format!("#define ADD mistake\n{ADD}")).build())
    }

    fn launch(&self, module: &HostModule, input: &[u32]) -> Result<Vec<u32>, BoxError> {
        type Add = unsafe extern "C" fn(u32, *const u32, *mut u32);
        let mut output = vec![0; input.len()];
        let count = u32::try_from(input.len())?;
        // SAFETY: this is the signature of the C function, and both arrays hold `count` numbers.
        unsafe { module.get::<Add>("add")?(count, input.as_ptr(), output.as_mut_ptr()) };
        Ok(output)
    }

    fn live_handles(&self, backend: &HostBackend) -> usize {
        backend.live_handles()
    }

    fn with_header(&self, add: u32) -> Result<KernelSpec, Cannot> {
        let source = format!("#include \"add.h\"\n{ADD}");
        Ok(good(spec(source).header("add.h", format!("#define ADD {add}u\n")).build()))
    }

    fn with_define(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Ok(good(spec(ADD.into()).define("ADD", format!("{add}u")).build()))
    }

    fn with_option(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Ok(good(spec(ADD.into()).option(format!("-DADD={add}u")).build()))
    }

    fn with_constant(&self, _: u32) -> Result<KernelSpec, Cannot> {
        Err(Cannot::because("C has no specialization constants"))
    }

    fn without_library(&self, nowhere: &Path) -> Result<HostBackend, Cannot> {
        Ok(HostBackend::builder().compiler(nowhere).build())
    }
}

fn main() -> ExitCode {
    grainstore_conformance::main(Host)
}
