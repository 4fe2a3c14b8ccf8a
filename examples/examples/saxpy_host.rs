//! `y = a x + y` on the plain CPU: a kernel in C, compiled once, called from eight threads.
//!
//!     cargo run --package grainstore-examples --example saxpy_host
//!
//! Run it twice: the second time, the kernel comes from the disk.

use std::error::Error;
use std::thread;

use grainstore::{DeviceId, Family};
use grainstore_artifacts::ArtifactStore;
use grainstore_host::{HostBackend, HostModule};
use grainstore_runtime::{Device, KernelSpec, Language, Runtime};

/// The signature of `saxpy` in `kernels/saxpy.c`.
type Saxpy = unsafe extern "C" fn(n: usize, a: f32, x: *const f32, y: *mut f32);

const THREADS: usize = 8;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let runtime = Runtime::builder()
        .backend(HostBackend::new())
        .store(ArtifactStore::open_default()?)
        .build()?;
    let device = runtime.device(&DeviceId::new(Family::HOST, 0))?;
    let spec = KernelSpec::builder("saxpy", Language::C)
        .source(include_str!("../kernels/saxpy.c"))
        .header("common.h", include_str!("../kernels/common.h"))
        .entry("saxpy")
        .define("VECTOR", "8")
        .option("-O3")
        .build()?;

    let x: Vec<f32> = (0..1_000_003).map(|i| (i % 1000) as f32).collect();
    let mut y = vec![1.0_f32; x.len()];
    let part = x.len().div_ceil(THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = x
            .chunks(part)
            .zip(y.chunks_mut(part))
            .map(|(x, y)| scope.spawn(|| saxpy(&runtime, &device, &spec, 2.0, x, y)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or(Err("a thread panicked".into())))
    })?;

    // Small whole numbers: every step is exact.
    let right = x.iter().zip(&y).all(|(x, y)| *y == 2.0 * x + 1.0);
    println!("{} elements are {}", y.len(), if right { "right" } else { "WRONG" });
    let figures = runtime.backend_of(&device)?.statistics();
    println!("{} of {THREADS} requests loaded the kernel", figures.built);
    runtime.shutdown()?;
    if right { Ok(()) } else { Err("saxpy computed something else".into()) }
}

fn saxpy(
    runtime: &Runtime,
    device: &Device,
    spec: &KernelSpec,
    a: f32,
    x: &[f32],
    y: &mut [f32],
) -> Result<(), Box<dyn Error + Send + Sync>> {
    // Who comes first compiles, or reads the disk; the others wait for the same module.
    let (kernel, outcome) = runtime.kernel_with_outcome(device, spec)?;
    println!("from {} in {:.1?}", outcome.origin, outcome.elapsed);
    let module = kernel.module::<HostModule>().ok_or("the host backend loads host modules")?;
    // SAFETY: This is the function's signature, and x and y are equally long.
    unsafe {
        let saxpy = module.get::<Saxpy>("saxpy")?;
        saxpy(y.len(), a, x.as_ptr(), y.as_mut_ptr());
    }
    Ok(())
}
