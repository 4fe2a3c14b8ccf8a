//! How soon a new process has the kernels that an earlier one compiled:
//!
//!     cargo bench --package grainstore-opencl --bench warm_start
//!
//! Twelve tiled matrix products, from the first request to the last module. Beside it the same
//! driver calls by hand on the same bytes, which are in memory already: what is left is the price of
//! the cache. And what a driver's own cache makes of the same sources, where it has one: PoCL's.
//!
//! Each figure is of processes of its own, the kinds in turn, so that a busy minute hits all of them.
//! PoCL writes what it loads into files and waits for the disk, by hand as well as through the cache;
//! so all files are in memory where the system has a folder for that, unless `TMPDIR` names another.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

use grainstore_artifacts::ArtifactStore;
use grainstore_conformance::bench::{self, Figures};
use grainstore_opencl::{OpenClBackend, OpenClModule};
use grainstore_runtime::{KernelSpec, Language, Origin, Runtime};
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device};
use opencl3::platform::get_platforms;
use opencl3::program::Program;

const SOURCE: &str = include_str!("matmul.cl");
const OPTIONS: &str = "-cl-fast-relaxed-math";
/// The first kinds compile for seconds.
const COLD_ROUNDS: usize = 3;
const ROUNDS: usize = 21;

fn main() {
    if !bench::serve(child) {
        parent();
    }
}

/// Element type, tile and work per item.
fn variants() -> impl Iterator<Item = [(&'static str, &'static str); 3]> {
    ["float", "int"].into_iter().flat_map(|t| {
        ["8", "16"].into_iter().flat_map(move |tile| {
            ["1", "2", "4"].map(|work| [("T", t), ("TILE", tile), ("WORK", work)])
        })
    })
}

// What is measured ------------------------------------------------------------------------------

fn child(kind: &str, folder: &Path) -> Duration {
    match kind {
        "cold" => {
            let took = runtime(folder, &Origin::Compiled);
            keep_binaries(folder);
            took
        }
        "warm" => runtime(folder, &Origin::Store("disk".into())),
        "by hand" => by_hand(folder),
        _ => driver_alone(),
    }
}

fn specs() -> Vec<KernelSpec> {
    variants()
        .map(|defines| {
            let spec = KernelSpec::builder("matmul", Language::OpenClC).source(SOURCE);
            let spec = defines.iter().fold(spec, |spec, (name, value)| spec.define(*name, *value));
            spec.entry("matmul").option(OPTIONS).build().unwrap()
        })
        .collect()
}

fn open(folder: &Path) -> Runtime {
    let store = ArtifactStore::open(folder.join("store")).unwrap();
    Runtime::builder().backend(OpenClBackend::new()).store(store).build().unwrap()
}

/// Through the runtime; every kernel must come from where it should.
fn runtime(folder: &Path, origin: &Origin) -> Duration {
    let (runtime, specs) = (open(folder), specs());
    let device = runtime.devices().remove(0);
    let began = Instant::now();
    let kernels: Vec<_> =
        specs.iter().map(|spec| runtime.kernel_with_outcome(&device, spec).unwrap()).collect();
    let took = began.elapsed();
    for (_, outcome) in &kernels {
        let same = matches!(
            (&outcome.origin, origin),
            (Origin::Compiled, Origin::Compiled) | (Origin::Store(_), Origin::Store(_))
        );
        assert!(same, "a kernel came from {}, not from {origin}", outcome.origin);
    }
    drop(kernels);
    runtime.shutdown().unwrap();
    took
}

/// The driver's binaries as the store has them, for the calls by hand.
fn keep_binaries(folder: &Path) {
    let runtime = open(folder);
    let device = runtime.devices().remove(0);
    for (number, spec) in specs().iter().enumerate() {
        let kernel = runtime.kernel(&device, spec).unwrap();
        let binary = kernel.module::<OpenClModule>().unwrap().binary().unwrap();
        fs::write(folder.join(format!("{number}.bin")), binary).unwrap();
    }
    runtime.shutdown().unwrap();
}

fn first_device() -> Device {
    let platforms = get_platforms().unwrap();
    let devices = platforms[0].get_devices(CL_DEVICE_TYPE_ALL).unwrap();
    Device::new(devices[0])
}

fn by_hand(folder: &Path) -> Duration {
    let device = first_device();
    let binaries: Vec<_> = (0..variants().count())
        .map(|number| fs::read(folder.join(format!("{number}.bin"))).unwrap())
        .collect();
    let began = Instant::now();
    let context = Context::from_device(&device).unwrap();
    let programs: Vec<_> = binaries
        .iter()
        .map(|binary| {
            let program = Program::create_and_build_from_binary(&context, &[binary], OPTIONS);
            let program = program.unwrap();
            assert_eq!(program.kernel_names(), "matmul");
            program
        })
        .collect();
    let took = began.elapsed();
    drop(programs);
    took
}

/// From the sources, so that the driver's own cache does what it can.
fn driver_alone() -> Duration {
    let device = first_device();
    let sources: Vec<_> = variants()
        .map(|defines| {
            let defines = defines.map(|(name, value)| format!("#define {name} {value}\n"));
            format!("{}{SOURCE}", defines.concat())
        })
        .collect();
    let began = Instant::now();
    let context = Context::from_device(&device).unwrap();
    let programs: Vec<_> = sources
        .iter()
        .map(|source| Program::create_and_build_from_source(&context, source, OPTIONS).unwrap())
        .collect();
    let took = began.elapsed();
    drop(programs);
    took
}

// Who measures ----------------------------------------------------------------------------------

fn parent() {
    if let Err(why) = devices() {
        println!("not run: warm_start: {why}");
        return;
    }
    let scratch = scratch();
    let place = |name: &str| {
        let folder = scratch.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    let mut cold = Figures::new("cold: compiled, and put into the store");
    for round in 0..COLD_ROUNDS {
        cold.add(measure("cold", &place(&format!("cold-{round}")), "0"));
    }
    let (filled, own) = (place("cold-0"), place("own"));
    // Twice, since PoCL's cache is not whole after one run in some releases.
    measure("driver alone", &own, "1");
    measure("driver alone", &own, "1");
    let mut warm = Figures::new("warm: a new process, from the store");
    let mut hand = Figures::new("the same driver calls by hand");
    let mut driver = Figures::new("the driver's own warm cache");
    for _ in 0..ROUNDS {
        warm.add(measure("warm", &filled, "0"));
        hand.add(measure("by hand", &filled, "0"));
        driver.add(measure("driver alone", &own, "1"));
    }

    let count = variants().count();
    println!("{count} matrix products, from the first request to the last module");
    println!("(files in {})", scratch.path().parent().unwrap_or(scratch.path()).display());
    println!("{}", Figures::HEAD);
    for figures in [&cold, &warm, &hand, &driver] {
        println!("{figures}");
    }
    let (warm, hand) = (warm.median(), hand.median());
    let (more, times) = (warm - hand, warm / hand);
    goal("warm to by hand", times, more <= 1.0 || times <= 1.1, "at most 1.1, or 1 ms more");
    println!("  ({more:.2} ms more)");
    let sooner = cold.median() / warm;
    goal("cold to warm", sooner, sooner >= 200.0, "at least 200");
    let sooner = driver.median() / warm;
    goal("the driver's cache to warm", sooner, sooner > 1.0, "more than 1");
}

fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if env::var_os("TMPDIR").is_none()
        && let Ok(folder) = tempfile::tempdir_in(memory)
    {
        return folder;
    }
    tempfile::tempdir().unwrap()
}

fn goal(what: &str, ratio: f64, met: bool, wanted: &str) {
    let verdict = if met { "met" } else { "MISSED" };
    println!("{what:<26} {ratio:9.2}    goal: {wanted}: {verdict}");
}

fn devices() -> Result<(), String> {
    use grainstore_runtime::Backend;
    match OpenClBackend::new().devices() {
        Ok(devices) if devices.is_empty() => {
            Err("the drivers that are there have no device".into())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// One process of that kind. The driver's own cache is off, unless it is what is measured, and in a
/// folder of its own in any case.
fn measure(kind: &str, folder: &Path, driver_cache: &str) -> f64 {
    let pocl = folder.join("pocl");
    if driver_cache == "0" {
        // What PoCL unpacked for an earlier process would make this one look better than it is.
        let _ = fs::remove_dir_all(&pocl);
    }
    fs::create_dir_all(&pocl).unwrap();
    bench::measure(kind, folder, |command| {
        command.env("POCL_KERNEL_CACHE", driver_cache).env("POCL_CACHE_DIR", &pocl);
    })
}
