//! The battery of tests that every backend passes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::env;
use std::path::Path;
use std::process::ExitCode;

use grainstore_conformance::{BoxError, Cannot, Subject};
use grainstore_opencl::{OpenClBackend, OpenClModule};
use grainstore_runtime::{BackendError, KernelSpec, KernelSpecBuilder, Language};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE};
use opencl3::types::CL_TRUE;

/// The first device of whatever driver is here.
struct OpenCl;

/// The kernel; its number is called `ADD`.
const ADD: &str = "kernel void add(global uint *x) { x[get_global_id(0)] += ADD; }\n";

fn spec(source: String) -> KernelSpecBuilder {
    KernelSpec::builder("add", Language::OpenClC).source(source).entry("add")
}

impl Subject for OpenCl {
    type Backend = OpenClBackend;

    fn name(&self) -> &str {
        "opencl"
    }

    fn backend(&self) -> Result<OpenClBackend, BackendError> {
        Ok(OpenClBackend::new())
    }

    fn kernel(&self, add: u32) -> KernelSpec {
        spec(format!("#define ADD {add}u\n{ADD}")).build().unwrap()
    }

    fn wrong(&self) -> KernelSpec {
        spec(format!("#define ADD mistake\n{ADD}")).build().unwrap()
    }

    fn launch(&self, module: &OpenClModule, input: &[u32]) -> Result<Vec<u32>, BoxError> {
        let context = Context::new(module.retained_context()?, &[module.device()]);
        let kernel = Kernel::new(module.kernel("add")?.into_raw());
        let mut numbers = input.to_vec();
        // SAFETY: the buffer is as large as the list, which is all that the kernel takes.
        unsafe {
            #[allow(deprecated, reason = "its successor needs OpenCL 2.0")]
            let queue = CommandQueue::create(&context, module.device(), 0)?;
            let (flags, start) = (CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, numbers.as_mut_ptr());
            let buffer = Buffer::<u32>::create(&context, flags, numbers.len(), start.cast())?;
            ExecuteKernel::new(&kernel)
                .set_arg(&buffer)
                .set_global_work_size(numbers.len())
                .enqueue_nd_range(&queue)?;
            queue.enqueue_read_buffer(&buffer, CL_TRUE, 0, &mut numbers, &[])?;
        }
        Ok(numbers)
    }

    fn live_handles(&self, backend: &OpenClBackend) -> usize {
        backend.live_handles()
    }

    fn with_header(&self, add: u32) -> Result<KernelSpec, Cannot> {
        let source = format!("#include \"add.h\"\n{ADD}");
        Ok(spec(source).header("add.h", format!("#define ADD {add}u\n")).build().unwrap())
    }

    fn with_define(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Ok(spec(ADD.into()).define("ADD", format!("{add}u")).build().unwrap())
    }

    fn with_option(&self, add: u32) -> Result<KernelSpec, Cannot> {
        Ok(spec(ADD.into()).option(format!("-DADD={add}u")).build().unwrap())
    }

    fn with_constant(&self, _: u32) -> Result<KernelSpec, Cannot> {
        Err(Cannot::because("OpenCL C has no specialization constants"))
    }

    fn without_library(&self, nowhere: &Path) -> Result<OpenClBackend, Cannot> {
        Ok(OpenClBackend::builder().library(nowhere).build())
    }
}

/// Set in this process and those that the battery starts.
const PREPARED: &str = "GRAINSTORE_TEST_PREPARED";

fn main() -> ExitCode {
    if env::var_os(PREPARED).is_some() {
        return grainstore_conformance::main(OpenCl);
    }
    // PoCL's cache in a folder of our own. It is not off: then PoCL deletes what it unpacked of a
    // binary with the first program that was loaded from it, also while another one is in use.
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: this process has one thread so far.
    unsafe {
        env::set_var(PREPARED, "1");
        env::set_var("POCL_KERNEL_CACHE", "1");
        env::set_var("POCL_CACHE_DIR", folder.path());
    }
    grainstore_conformance::main(OpenCl)
}
