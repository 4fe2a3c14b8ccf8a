//! How soon a new process has the code of kernels that an earlier one compiled, on a machine that
//! needs no driver for it:
//!
//!     cargo bench --package grainstore-cuda --bench warm_start
//!
//! Twelve tiled matrix products to CUBIN for `sm_90`, through runtime, store and backend, from the
//! first request to the last module; loading into a driver is left out. Beside it plain reads and
//! BLAKE3 of the same files: what is left is the price of the cache. `GRAINSTORE_NVRTC_LIBRARY`
//! chooses the compiler.
//!
//! Each figure is of processes of its own, the kinds in turn, so that a busy minute hits all of them.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use grainstore::{DeviceId, Family};
use grainstore_artifacts::ArtifactStore;
use grainstore_conformance::bench::{self, Figures};
use grainstore_cuda::CudaBackend;
use grainstore_runtime::{
    Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Origin, Runtime, Target,
    Toolchain,
};

const SOURCE: &str = include_str!("../../../examples/kernels/matmul.cu");
const HEADER: &str = include_str!("../../../examples/kernels/common.h");
const TARGET: &str = "sm_90";
const COLD_ROUNDS: usize = 3;
const ROUNDS: usize = 41;

fn main() {
    if !bench::serve(child) {
        parent();
    }
}

// What is measured ------------------------------------------------------------------------------

/// The CUDA backend with a device that is not here: it compiles for it, and checks what it would
/// load there.
struct WithoutDevice(CudaBackend);

impl WithoutDevice {
    fn label(&self, spec: &KernelSpec) -> Result<String, BackendError> {
        let toolchain = self.0.toolchain_for(&Target::new(TARGET), spec)?;
        Ok(format!("{TARGET} | {}", toolchain.as_str()))
    }
}

impl Backend for WithoutDevice {
    type Module = Artifact;

    fn name(&self) -> &str {
        self.0.name()
    }

    fn family(&self) -> Family {
        self.0.family()
    }

    fn languages(&self) -> &[Language] {
        self.0.languages()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        let id = DeviceId::new(Family::CUDA, 0);
        Ok(vec![DeviceInfo { id, name: "not here".into(), driver: "none".into() }])
    }

    fn target(&self, _: &DeviceId) -> Result<Target, BackendError> {
        Ok(Target::new(TARGET))
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        self.0.toolchain(target)
    }

    fn toolchain_for(&self, target: &Target, spec: &KernelSpec) -> Result<Toolchain, BackendError> {
        self.0.toolchain_for(target, spec)
    }

    fn build(
        &self,
        _: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(Artifact, Option<Artifact>), BackendError> {
        let artifact = self.0.compile_for(&Target::new(TARGET), spec)?;
        Ok((artifact.clone(), Some(artifact)))
    }

    fn load(
        &self,
        _: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<Artifact, BackendError> {
        artifact.check_seal(&self.label(spec)?)?;
        Ok(artifact.clone())
    }

    fn unload(&self, _: Artifact) -> Result<(), BackendError> {
        Ok(())
    }

    fn destroy_device(&self, _: &DeviceId) -> Result<(), BackendError> {
        Ok(())
    }
}

/// Element type, tile and work per thread.
fn specs() -> Vec<KernelSpec> {
    let mut specs = Vec::new();
    for element in ["float", "int"] {
        for tile in ["8", "16"] {
            for work in ["1", "2", "4"] {
                let spec = KernelSpec::builder("matmul", Language::CudaCpp)
                    .source(SOURCE)
                    .header("common.h", HEADER)
                    .define("T", element)
                    .define("TILE", tile)
                    .define("WORK", work)
                    .option("--use_fast_math")
                    .entry("matmul");
                specs.push(spec.build().unwrap());
            }
        }
    }
    specs
}

fn child(kind: &str, folder: &Path) -> Duration {
    match kind {
        "cold" => through_runtime(folder, false),
        "warm" => through_runtime(folder, true),
        "compiler" => {
            let began = Instant::now();
            CudaBackend::new().toolchain(&Target::new(TARGET)).unwrap();
            began.elapsed()
        }
        _ => plain(folder),
    }
}

/// Every kernel must come from where it should. Finding the compiler, of which the key tells, is a
/// figure of its own.
fn through_runtime(folder: &Path, warm: bool) -> Duration {
    let store = ArtifactStore::open(folder.join("store")).unwrap();
    let backend = WithoutDevice(CudaBackend::new());
    let runtime = Runtime::builder().backend(backend).store(store).build().unwrap();
    let device = runtime.devices().remove(0);
    runtime.backend_of(&device).unwrap().toolchain(&device).unwrap();
    let specs = specs();
    let began = Instant::now();
    let kernels: Vec<_> =
        specs.iter().map(|spec| runtime.kernel_with_outcome(&device, spec).unwrap()).collect();
    let took = began.elapsed();
    for (kernel, outcome) in &kernels {
        assert!(!kernel.module::<Artifact>().unwrap().binary().is_empty());
        let from_store = matches!(outcome.origin, Origin::Store(_));
        assert_eq!(from_store, warm, "a kernel came from {}", outcome.origin);
    }
    drop(kernels);
    runtime.shutdown().unwrap();
    took
}

/// The files of the store, side by side, as a program without any cache would have them.
fn keep_files(folder: &Path) -> u64 {
    let store = ArtifactStore::open(folder.join("store")).unwrap();
    let backend = WithoutDevice(CudaBackend::new());
    let runtime = Runtime::builder().backend(backend).build().unwrap();
    let device = runtime.devices().remove(0);
    let cache = runtime.backend_of(&device).unwrap();
    let mut bytes = 0;
    for (number, spec) in specs().iter().enumerate() {
        let key = cache.key(&device, spec).unwrap();
        bytes += fs::copy(store.file(key), folder.join(format!("{number}.plain"))).unwrap();
    }
    bytes
}

fn plain(folder: &Path) -> Duration {
    let files: Vec<_> =
        (0..specs().len()).map(|number| folder.join(format!("{number}.plain"))).collect();
    let began = Instant::now();
    let read: Vec<_> = files
        .iter()
        .map(|file| {
            let bytes = fs::read(file).unwrap();
            (blake3::hash(&bytes), bytes)
        })
        .collect();
    let took = began.elapsed();
    black_box(read);
    took
}

// Who measures ----------------------------------------------------------------------------------

fn parent() {
    let compiler = match CudaBackend::new().toolchain(&Target::new(TARGET)) {
        Ok(toolchain) => toolchain,
        Err(why) => {
            println!("not run: warm_start: {why}");
            return;
        }
    };
    let scratch = tempfile::tempdir().unwrap();
    let folder = |name: String| {
        let folder = scratch.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    let mut cold = Figures::new("cold: compiled, and put into the store");
    for round in 0..COLD_ROUNDS {
        cold.add(measure("cold", &folder(format!("cold-{round}"))));
    }
    let filled = folder("cold-0".into());
    let bytes = keep_files(&filled);
    let mut warm = Figures::new("warm: a new process, from the store");
    let mut plain = Figures::new("plain reads and BLAKE3 of the same files");
    let mut found = Figures::new("beside it: finding and loading the compiler");
    for _ in 0..ROUNDS {
        warm.add(measure("warm", &filled));
        plain.add(measure("plain", &filled));
        found.add(measure("compiler", &filled));
    }

    let count = specs().len();
    println!("{count} matrix products to CUBIN for {TARGET}, {bytes} bytes, {}", compiler.as_str());
    println!("{}", Figures::HEAD);
    for figures in [&cold, &warm, &plain, &found] {
        println!("{figures}");
    }
    let (warm, plain) = (warm.median(), plain.median());
    let (more, times) = (warm - plain, warm / plain);
    let verdict = if more <= 1.0 || times <= 1.1 { "met" } else { "MISSED" };
    println!(
        "warm to plain {times:.2}, {more:.3} ms more    goal: at most 1.1, or 1 ms more: {verdict}"
    );
    println!("cold to warm {:.0}", cold.median() / warm);
}

/// One process of that kind, in milliseconds.
fn measure(kind: &str, folder: &Path) -> f64 {
    bench::measure(kind, folder, |_| ())
}
