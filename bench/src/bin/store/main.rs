//! What the store on disk costs, beside plain files, `cacache`, and a process alone:
//!
//!     cargo run --release --manifest-path bench/Cargo.toml --no-default-features --features store --bin store
//!
//! Everything is in the page cache. All sides of a row take turns in short batches, so that a busy
//! minute hits all of them, and what counts is the median of the batches. Names of parts as arguments
//! (`loads`, `puts`, `many`, `processes`) run those alone. Files lie in `TMPDIR`.

mod loads;
mod many;
mod processes;
mod puts;
mod turns;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use grainstore::KernelKey;
use grainstore_artifacts::Group;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// The length of an artifact's binary.
const SIZE: usize = 64 << 10;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result {
    if processes::is_child() {
        return processes::child();
    }
    let asked: Vec<String> = std::env::args().skip(1).collect();
    type Part = fn(&std::path::Path) -> Result;
    let parts: [(&str, Part); 4] = [
        ("loads", loads::run),
        ("puts", puts::run),
        ("many", many::run),
        ("processes", processes::run),
    ];
    if let Some(name) = asked.iter().find(|name| !parts.iter().any(|part| part.0 == name.as_str()))
    {
        return Err(format!("there is no part `{name}`: loads, puts, many, processes").into());
    }
    for (name, part) in parts {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            let folder = tempfile::tempdir()?;
            part(folder.path())?;
        }
    }
    Ok(())
}

fn key(number: usize) -> Result<KernelKey> {
    Ok(KernelKey::builder(format!("kernel-{number}"))
        .target("sm_90a")
        .toolchain("nvrtc 12.9.86")
        .language("cuda-c++")
        .source("__global__ void kernel() {}")
        .define("BLOCK", "128")
        .build()?)
}

/// The bytes of a kernel's binary, different for each.
fn bytes(number: usize) -> Vec<u8> {
    (0..SIZE).map(|at| (at * 31 + number * 7 + at / 251) as u8).collect()
}

fn group(number: usize) -> Group {
    Group::new("kernel.cubin", bytes(number)).with_compile_time(Duration::from_millis(30))
}
