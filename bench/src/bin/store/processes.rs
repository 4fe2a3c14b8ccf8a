//! Whole processes, with kernels in C: a cold start and a warm one, and eight cold ones at once.
//!
//! Each process asks for every kernel, from as many threads as there are processors, so that one
//! process alone has all the machine, and eight have no more.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use grainstore_artifacts::ArtifactStore;
use grainstore_host::HostBackend;
use grainstore_runtime::{KernelSpec, Language, Origin, Runtime};

use crate::Result;
use crate::turns::{judged, median};

/// Says to a child where its store is.
const FOLDER: &str = "GRAINSTORE_BENCH_FOLDER";
const KERNELS: usize = 32;
const TOGETHER: usize = 8;
const ROUNDS: usize = 5;

pub(crate) fn is_child() -> bool {
    std::env::var_os(FOLDER).is_some()
}

/// Loads or makes all kernels. Prints how many it compiled, and how long all of them took.
pub(crate) fn child() -> Result {
    let folder = std::env::var_os(FOLDER).ok_or("no folder")?;
    let began = Instant::now();
    let store = ArtifactStore::open(folder)?;
    let runtime = Runtime::builder().backend(HostBackend::new()).store(store).build()?;
    let device = runtime.devices().into_iter().next().ok_or("no device")?;
    let specs = (0..KERNELS).map(spec).collect::<Result<Vec<_>>>()?;
    let (next, compiled) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> std::result::Result<(), String> {
        while let Some(spec) = specs.get(next.fetch_add(1, Relaxed)) {
            let outcome = runtime.kernel_with_outcome(&device, spec);
            let (_, outcome) = outcome.map_err(|error| error.to_string())?;
            compiled.fetch_add(usize::from(matches!(outcome.origin, Origin::Compiled)), Relaxed);
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })?;
    println!("{} {}", compiled.into_inner(), began.elapsed().as_nanos());
    runtime.shutdown()?;
    Ok(())
}

/// A tiled matrix product, for which the compiler has something to do.
fn spec(number: usize) -> Result<KernelSpec> {
    const SOURCE: &str = "
        void matmul(int n, const T *a, const T *b, T *c) {
            for (int i = 0; i < n; i += TILE)
                for (int j = 0; j < n; j += TILE)
                    for (int k = 0; k < n; k += TILE)
                        for (int x = i; x < i + TILE; x++)
                            for (int y = j; y < j + TILE; y++) {
                                T sum = c[x * n + y];
                                for (int z = k; z < k + TILE; z++) sum += a[x * n + z] * b[z * n + y];
                                c[x * n + y] = sum;
                            }
        }";
    let spec = KernelSpec::builder("matmul", Language::C).source(SOURCE).entry("matmul");
    let spec = spec.define("T", if number.is_multiple_of(2) { "float" } else { "int" });
    Ok(spec.define("TILE", (4 + number / 2).to_string()).option("-O3").build()?)
}

pub(crate) fn run(folder: &Path) -> Result {
    let (mut cold, mut warm, mut together) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cold_work, mut warm_work) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let place = folder.join(format!("alone-{round}"));
        let (time, compiled, work) = start(&place, 1)?;
        expect(compiled, KERNELS)?;
        cold.push(time);
        cold_work.push(work);
        for _ in 0..ROUNDS {
            let (time, compiled, work) = start(&place, 1)?;
            expect(compiled, 0)?;
            warm.push(time);
            warm_work.push(work);
        }
        let (time, compiled, _) = start(&folder.join(format!("together-{round}")), TOGETHER)?;
        expect(compiled, KERNELS)?;
        together.push(time);
    }
    let [cold, warm, together] = [cold, warm, together].map(median);
    let [cold_work, warm_work] = [cold_work, warm_work].map(median);
    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    let sooner = ratio(cold_work, warm_work);
    let verdict = if sooner >= 50.0 { "met" } else { "MISSED" };
    println!("{KERNELS} kernels in C, whole processes");
    println!(
        "  cold: {cold:.1?}, of which {cold_work:.1?} for opening, asking the compiler, kernels"
    );
    println!("  warm: {warm:.1?}, of which {warm_work:.1?}");
    println!(
        "  {sooner:.0} times sooner  (goal 50: {verdict}); {:.0} times with start and end of the process",
        ratio(cold, warm)
    );
    let times = ratio(together, cold);
    println!(
        "  {TOGETHER} cold processes at once: {together:.1?}, {KERNELS} compiles in each round, {times:.2} x of one{}",
        judged(times, 1.15)
    );
    Ok(())
}

fn expect(compiled: usize, expected: usize) -> Result {
    if compiled == expected {
        return Ok(());
    }
    Err(format!("{compiled} kernels were compiled, not {expected}").into())
}

/// So many processes at once on one store: until all have ended, how many kernels all of them
/// compiled, and the longest work of one.
fn start(folder: &Path, processes: usize) -> Result<(Duration, usize, Duration)> {
    let program = std::env::current_exe()?;
    let began = Instant::now();
    let spawn = |_| Command::new(&program).env(FOLDER, folder).stdout(Stdio::piped()).spawn();
    let children: Vec<Child> = (0..processes).map(spawn).collect::<std::io::Result<_>>()?;
    let (mut compiled, mut longest) = (0, 0);
    for child in children {
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (number, work) = text.trim().split_once(' ').ok_or("a process failed")?;
        compiled += number.parse::<usize>()?;
        longest = longest.max(work.parse()?);
    }
    Ok((began.elapsed(), compiled, Duration::from_nanos(longest)))
}
