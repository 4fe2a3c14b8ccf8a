//! `y = a x + y` on an NVIDIA GPU: the kernel through the cache, memory and launch with `cudarc`, as
//! without it.
//!
//!     cargo run --package grainstore-cuda --example saxpy_cuda
//!
//! Run it twice: the second time, the kernel comes from the disk.

use std::env;
use std::error::Error;
use std::sync::Arc;

use cudarc::driver::result::launch_kernel;
use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DevicePtrMut};
use grainstore::{DeviceId, Family};
use grainstore_artifacts::ArtifactStore;
use grainstore_cuda::{CudaBackend, CudaModule};
use grainstore_runtime::{KernelSpec, Language, Runtime};

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(unsigned n, float a, const float *x, float *y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"#;
/// Threads of a block.
const BLOCK: u32 = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder()
        .backend(CudaBackend::new())
        .store(ArtifactStore::open_default()?)
        .build()?;
    let device = match runtime.device(&DeviceId::new(Family::CUDA, 0)) {
        Ok(device) => device,
        Err(why) if is_required() => return Err(why.into()),
        // No driver or no GPU: say so. The project's tests make that a failure where there is one.
        Err(why) => {
            println!("not run: saxpy: {why}");
            return Ok(());
        }
    };
    println!("{device}");
    let spec =
        KernelSpec::builder("saxpy", Language::CudaCpp).source(SAXPY).entry("saxpy").build()?;

    // The device's primary context, which the kernels are loaded into as well.
    let stream = CudaContext::new(0)?.default_stream();
    let x: Vec<f32> = (0..1_000_003).map(|i| (i % 1000) as f32).collect();
    let mut y = vec![1.0_f32; x.len()];
    for _ in 0..2 {
        let (kernel, outcome) = runtime.kernel_with_outcome(&device, &spec)?;
        println!("from {} in {:.1?}", outcome.origin, outcome.elapsed);
        let module = kernel.module::<CudaModule>().ok_or("CUDA loads CUDA modules")?;
        saxpy(&stream, module, 2.0, &x, &mut y)?;
    }

    // Small whole numbers: every step is exact.
    let right = x.iter().zip(&y).all(|(x, y)| *y == 4.0 * x + 1.0);
    println!("{} elements are {}", y.len(), if right { "right" } else { "WRONG" });
    runtime.shutdown()?;
    if right { Ok(()) } else { Err("saxpy computed something else".into()) }
}

/// One launch. An application keeps its buffers; only the kernel is the cache's business.
fn saxpy(
    stream: &Arc<CudaStream>,
    module: &CudaModule,
    a: f32,
    x: &[f32],
    y: &mut [f32],
) -> Result<(), Box<dyn Error>> {
    let mut n = u32::try_from(y.len())?;
    let mut a = a;
    let from = stream.clone_htod(x)?;
    let mut to = stream.clone_htod(&*y)?;
    {
        let (mut from, _reading) = from.device_ptr(stream);
        let (mut to, _writing) = to.device_ptr_mut(stream);
        let mut arguments = [
            (&raw mut n).cast(),
            (&raw mut a).cast(),
            (&raw mut from).cast(),
            (&raw mut to).cast(),
        ];
        let (grid, block) = ((n.div_ceil(BLOCK), 1, 1), (BLOCK, 1, 1));
        let function = module.function("saxpy")?.cast();
        // SAFETY: the module lives, in the stream's context, which is current since the copies; these
        // are the kernel's arguments, and it stays within n.
        unsafe { launch_kernel(function, grid, block, 0, stream.cu_stream(), &mut arguments)? };
    }
    stream.memcpy_dtoh(&to, y)?;
    stream.synchronize()?;
    Ok(())
}

/// Whether this machine is known to have a GPU.
fn is_required() -> bool {
    let required = env::var("GRAINSTORE_REQUIRE").unwrap_or_default();
    required.split(',').any(|name| name.trim() == "cuda")
}
