//! The programs of the check: built here, or built elsewhere and brought along in a folder.

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;

use crate::report::Outcome;
use crate::shell;

/// Each by the name that it has here, its package's folder, and its name for cargo.
const PROGRAMS: [(&str, &str, &str); 6] = [
    ("grainstore", "crates/grainstore-cli", "grainstore"),
    ("saxpy_cuda", "backends/cuda", "saxpy_cuda"),
    ("saxpy_vulkan", "backends/vulkan", "saxpy_vulkan"),
    ("every_kernel", "examples", "every_kernel"),
    ("conformance_cuda", "backends/cuda", "conformance"),
    ("conformance_vulkan", "backends/vulkan", "conformance"),
];

/// This very program, which starts the others.
const SELF: (&str, &str, &str) = ("xtask", "xtask", "xtask");

/// What cargo is to build: nothing that these do not need, least of all wgpu.
const BUILD: [&str; 17] = [
    "build",
    // What can be built is, also where something else does not compile.
    "--keep-going",
    "--message-format=json-render-diagnostics",
    "--package=grainstore-cli",
    "--package=grainstore-cuda",
    "--package=grainstore-vulkan",
    "--package=grainstore-examples",
    "--features=grainstore-cli/cuda",
    "--features=grainstore-cli/vulkan",
    "--features=grainstore-examples/cuda",
    "--features=grainstore-examples/vulkan",
    "--bin=grainstore",
    "--example=saxpy_cuda",
    "--example=saxpy_vulkan",
    "--test=every_kernel",
    "--test=conformance",
    "--quiet",
];

/// For a machine without Rust: small and quick, and with this program.
const PACKED: [&str; 5] = [
    "--release",
    "--config=profile.release.strip=true",
    "--config=profile.release.debug=false",
    "--package=xtask",
    "--bin=xtask",
];

/// Where they are.
#[derive(Default)]
pub(super) struct Programs {
    /// The example kernels' sources are in its folder `kernels`.
    examples: PathBuf,
    files: Vec<(&'static str, PathBuf)>,
}

impl Programs {
    /// Builds them, without the network.
    pub(super) fn build() -> (Outcome, Self) {
        let examples = shell::root().join("examples");
        let (outcome, files) = build(&PROGRAMS, &[], true);
        (outcome, Self { examples, files })
    }

    /// Those that [`pack`] left in this folder.
    pub(super) fn packed(folder: &Path) -> (Outcome, Self) {
        let file = |name| folder.join(format!("{name}{EXE_SUFFIX}"));
        let (files, missing): (Vec<_>, Vec<_>) =
            PROGRAMS.iter().map(|(name, ..)| (*name, file(name))).partition(|(_, it)| it.is_file());
        let outcome = match missing.first() {
            None => Outcome::Passed,
            Some((_, path)) => Outcome::Failed(format!("{} is not there", path.display())),
        };
        (outcome, Self { examples: folder.to_owned(), files })
    }

    /// # Errors
    /// It could not be built, or was not brought along.
    pub(super) fn get(&self, name: &str) -> Result<&Path, String> {
        let file = self.files.iter().find(|(known, _)| *known == name);
        file.map(|(_, path)| path.as_path()).ok_or_else(|| format!("there is no {name}: see above"))
    }

    /// What the examples take for the folder of their package.
    pub(super) fn examples(&self) -> &Path {
        &self.examples
    }
}

/// Makes a folder with the programs and what they need to read.
pub(super) fn pack(folder: &Path) -> Outcome {
    let programs = [&PROGRAMS[..], &[SELF]].concat();
    let (outcome, files) = build(&programs, &PACKED, false);
    if outcome != Outcome::Passed {
        return outcome;
    }
    match copy(&files, folder) {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(format!("{}: {error}", folder.display())),
    }
}

fn copy(files: &[(&str, PathBuf)], folder: &Path) -> io::Result<()> {
    let kernels = folder.join("kernels");
    fs::create_dir_all(&kernels)?;
    for (name, path) in files {
        fs::copy(path, folder.join(format!("{name}{EXE_SUFFIX}")))?;
    }
    for source in fs::read_dir(shell::root().join("examples/kernels"))? {
        let source = source?.path();
        fs::copy(&source, kernels.join(source.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

/// Builds programs, and says where each is that was built.
fn build(
    programs: &[(&'static str, &str, &str)],
    also: &[&str],
    offline: bool,
) -> (Outcome, Vec<(&'static str, PathBuf)>) {
    let mut command = shell::cargo(&BUILD);
    command.args(also);
    if offline {
        command.env("CARGO_NET_OFFLINE", "true");
    }
    // Standard output carries the messages; people read what goes to standard error.
    let output = match command.stderr(Stdio::inherit()).output() {
        Ok(output) => output,
        Err(error) => return (Outcome::Failed(format!("cargo: {error}")), Vec::new()),
    };
    let files = built(&String::from_utf8_lossy(&output.stdout), programs);
    let missing = programs.iter().find(|(name, ..)| files.iter().all(|(it, _)| it != name));
    let outcome = match missing {
        None if output.status.success() => Outcome::Passed,
        None => Outcome::Failed(format!("cargo build: {}", output.status)),
        Some((name, ..)) => Outcome::Failed(format!("{name} does not build: {}", output.status)),
    };
    (outcome, files)
}

/// The programs among cargo's messages.
fn built(messages: &str, programs: &[(&'static str, &str, &str)]) -> Vec<(&'static str, PathBuf)> {
    #[derive(Deserialize)]
    struct Message {
        manifest_path: PathBuf,
        target: Target,
        executable: PathBuf,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    let name_of = |message: &Message| {
        let package = message.manifest_path.parent()?;
        let is_it = |(_, folder, target): &&(&str, &str, &str)| {
            package.ends_with(folder) && message.target.name == *target
        };
        programs.iter().find(is_it).map(|(name, ..)| *name)
    };
    messages
        .lines()
        // The others are of no program.
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter_map(|message| Some((name_of(&message)?, message.executable)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_apart_by_package_and_name() {
        let message = |package: &str, target: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/a/{package}/Cargo.toml",
                "target":{{"name":"{target}","kind":["test"]}},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let messages = [
            message("backends/cuda", "conformance", "\"/t/one\""),
            message("backends/vulkan", "conformance", "\"/t/two\""),
            message("backends/wgpu", "conformance", "\"/t/other\""),
            message("backends/cuda", "grainstore_cuda", "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let found = built(&messages.join("\n"), &PROGRAMS);
        let expected = [("conformance_cuda", "/t/one"), ("conformance_vulkan", "/t/two")]
            .map(|(name, path)| (name, PathBuf::from(path)));
        assert_eq!(found, expected);
    }
}
