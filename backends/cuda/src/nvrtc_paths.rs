//! Where NVRTC may be.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The library, or the folder that it is in.
pub(crate) const VARIABLE: &str = "GRAINSTORE_NVRTC_LIBRARY";
/// Where the toolkit's installers and users say that the toolkit is.
const TOOLKIT: [&str; 2] = ["CUDA_PATH", "CUDA_HOME"];

/// The system's own, the preferred one first.
const NAMES: [&str; 4] = if cfg!(windows) {
    ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll", "nvrtc64.dll"]
} else {
    ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"]
};

/// The files to try, in order: the one chosen, the variable's, the toolkit's, the system's.
pub(crate) fn candidates(chosen: Option<&Path>) -> Vec<PathBuf> {
    let variable =
        |name: &str| env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    if let Some(path) = chosen.map(Path::to_owned).or_else(|| variable(VARIABLE)) {
        return if path.is_dir() { in_folder(&path) } else { vec![path] };
    }
    let mut paths = Vec::new();
    for toolkit in TOOLKIT.into_iter().filter_map(variable) {
        let folders: &[&str] = if cfg!(windows) { &["bin/x64", "bin"] } else { &["lib64", "lib"] };
        let folders = folders.iter().map(|folder| toolkit.join(folder));
        paths
            .extend(folders.filter(|folder| folder.is_dir()).flat_map(|folder| in_folder(&folder)));
    }
    if cfg!(windows) {
        // By full paths, so that it is known which file was loaded.
        let folders = variable("PATH").unwrap_or_default();
        paths.extend(env::split_paths(&folders).flat_map(|folder| libraries_of(&folder)));
    } else {
        paths.extend(NAMES.map(PathBuf::from));
        paths.extend(NAMES.map(|name| Path::new("/usr/local/cuda/lib64").join(name)));
    }
    if paths.is_empty() {
        paths.push(PathBuf::from(NAMES[0]));
    }
    paths
}

/// What is in this folder, or what should be.
fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let found = libraries_of(folder);
    if found.is_empty() { NAMES.iter().map(|name| folder.join(name)).collect() } else { found }
}

/// NVRTC libraries of any version in a folder, the newest first.
fn libraries_of(folder: &Path) -> Vec<PathBuf> {
    let prefix = if cfg!(windows) { "nvrtc64_" } else { "libnvrtc.so" };
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.starts_with(prefix) && !name.contains(".alt"))
        .filter(|name| !cfg!(windows) || name.ends_with(".dll"))
        .collect();
    names.sort_by_cached_key(|name| std::cmp::Reverse(version_in(name)));
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// The numbers in a file's name, in order.
fn version_in(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_library_of_a_folder_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let names = if cfg!(windows) {
            [
                "nvrtc64_112_0.dll",
                "nvrtc64_130_0.dll",
                "nvrtc64_120_0.alt.dll",
                "nvrtc-builtins64_130.dll",
            ]
        } else {
            [
                "libnvrtc.so.12",
                "libnvrtc.so.13.5.37",
                "libnvrtc.alt.so.12",
                "libnvrtc-builtins.so.13.5",
            ]
        };
        for name in names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let expected = [names[1], names[0]].map(|name| folder.path().join(name));
        assert_eq!(candidates(Some(folder.path())), expected);
        assert_eq!(candidates(Some(Path::new("/nowhere/x.so"))), [Path::new("/nowhere/x.so")]);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(candidates(Some(empty.path()))[0], empty.path().join(NAMES[0]));
    }
}
