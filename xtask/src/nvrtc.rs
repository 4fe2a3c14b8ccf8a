//! NVIDIA's run-time compiler, for the tests: it needs no card and no driver. Taken where the caller
//! has it, else from PyPI, where NVIDIA publishes it, once, into the target folder.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::report::Outcome;
use crate::shell;

/// The package of each major version, since code for both is to be right, and the release.
const PACKAGES: [(&str, &str); 2] =
    [("nvidia-cuda-nvrtc-cu12", "12.9.86"), ("nvidia-cuda-nvrtc", "13.5.37")];

/// Where tests and programs already look.
const VARIABLES: [&str; 2] = ["GRAINSTORE_TEST_NVRTC", "GRAINSTORE_NVRTC_LIBRARY"];

/// The libraries, the oldest first.
///
/// # Errors
/// The reason why there is none, and what to do.
pub(crate) fn find() -> Result<Vec<PathBuf>, String> {
    if let Some(list) = VARIABLES.iter().find_map(env::var_os) {
        return Ok(env::split_paths(&list).collect());
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let [first, _] = VARIABLES;
        return Err(format!("it is fetched for Linux on x86-64 alone; give its path in {first}"));
    }
    PACKAGES.iter().map(|(package, version)| library(package, version)).collect()
}

fn library(package: &str, version: &str) -> Result<PathBuf, String> {
    let folder = shell::target().join("nvrtc").join(format!("{package}-{version}"));
    if !folder.exists() {
        let fetched = folder.with_extension("part");
        // Renamed when it is whole, so that what an interruption leaves is not taken for it.
        fetch(package, version, &fetched)?;
        fs::rename(&fetched, &folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    search(&folder).ok_or_else(|| format!("there is no libnvrtc in {}", folder.display()))
}

fn fetch(package: &str, version: &str, folder: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    eprintln!("fetching {package} {version} from PyPI, once");
    let wanted = format!("{package}=={version}");
    let place = folder.to_string_lossy();
    let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"];
    python(&[&download[..], &["--dest", &place, &wanted]].concat())
        .map_err(|why| format!("{why}; it wants Python with pip, and the network"))?;
    let wheels =
        files(folder).into_iter().filter(|path| path.extension().is_some_and(|it| it == "whl"));
    for wheel in wheels {
        python(&["-m", "zipfile", "-e", &wheel.to_string_lossy(), &place])?;
        let _ = fs::remove_file(wheel);
    }
    Ok(())
}

fn python(arguments: &[&str]) -> Result<(), String> {
    match shell::run(shell::program("python3").args(arguments)) {
        Outcome::Passed => Ok(()),
        Outcome::Failed(why) | Outcome::NotRun(why) => Err(why),
    }
}

/// The library in this folder or below.
fn search(folder: &Path) -> Option<PathBuf> {
    files(folder).into_iter().find_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let is_it = name.strip_prefix("libnvrtc.so.").is_some();
        if path.is_dir() { search(&path) } else { is_it.then_some(path) }
    })
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
