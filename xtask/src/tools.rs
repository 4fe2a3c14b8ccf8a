//! Tools that cargo installs: taken where they are, else built once into the target folder.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::report::Outcome;
use crate::shell;

/// The subcommand of cargo of that name; of this version where it has to be built.
///
/// # Errors
/// The reason why it is neither here nor can be had.
pub(crate) fn cargo_tool(subcommand: &str, version: &str) -> Result<Command, String> {
    let tools = shell::target().join("tools");
    if shell::succeeds(tool(subcommand, &tools).arg("--version")) {
        return Ok(tool(subcommand, &tools));
    }
    let package = format!("cargo-{subcommand}");
    eprintln!("{package} is not installed: building it, once, into {}", tools.display());
    let arguments = ["install", "--locked", "--quiet", &package, "--version", version];
    let mut install = shell::cargo(&arguments);
    // Its own build folder, so that flags meant for this workspace do not reach it.
    install.arg("--root").arg(&tools).env("CARGO_TARGET_DIR", tools.join("build"));
    match shell::run(&mut install) {
        Outcome::Passed => Ok(tool(subcommand, &tools)),
        Outcome::Failed(why) | Outcome::NotRun(why) => {
            Err(format!("{package} is not installed and can't be built here ({why})"))
        }
    }
}

/// Cargo finds its subcommands in `PATH`: the user's own first, then ours.
fn tool(subcommand: &str, tools: &Path) -> Command {
    let own = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&own).chain([tools.join("bin")]);
    let mut command = shell::cargo(&[subcommand]);
    if let Ok(path) = env::join_paths(places) {
        command.env("PATH", path);
    }
    command
}
