//! Tools that cargo installs: taken where they are, else built once into the target folder.

use std::path::PathBuf;
use std::process::Command;

use crate::report::Outcome;
use crate::shell;

/// The command for a subcommand of cargo, of this version where it has to be built.
///
/// # Errors
/// The reason why it is neither here nor can be had.
pub(crate) fn cargo_tool(name: &str, version: &str) -> Result<Command, String> {
    let tools = shell::target().join("tools");
    let built = tools.join("bin").join(name);
    let subcommand = name.trim_start_matches("cargo-");
    for candidate in [PathBuf::from(name), built.clone()] {
        let mut probe = shell::program(&candidate.to_string_lossy());
        if shell::succeeds(probe.arg("--version")) {
            return Ok(tool(&candidate, subcommand));
        }
    }
    eprintln!("{name} is not installed: building it, once, into {}", tools.display());
    let mut install = shell::cargo(&["install", "--locked", "--quiet", name, "--version", version]);
    // Its own build folder, so that flags meant for this workspace do not reach it.
    install.arg("--root").arg(&tools).env("CARGO_TARGET_DIR", tools.join("build"));
    match shell::run(&mut install) {
        Outcome::Passed => Ok(tool(&built, subcommand)),
        Outcome::Failed(why) | Outcome::NotRun(why) => {
            Err(format!("{name} is not installed and can't be built here ({why})"))
        }
    }
}

/// Cargo's tools want their own name as the first argument.
fn tool(path: &std::path::Path, subcommand: &str) -> Command {
    let mut command = shell::program(&path.to_string_lossy());
    command.arg(subcommand);
    command
}
