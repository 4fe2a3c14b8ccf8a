//! Running other programs from the root of the workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::Outcome;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folder where cargo builds, as this very program's place says it.
pub(crate) fn target() -> PathBuf {
    let program = std::env::current_exe().ok();
    let built = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    built.map_or_else(|| root().join("target"), Path::to_owned)
}

/// Cargo, the one that started this program, with these arguments.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = program(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    // What `cargo run` says of this program would mislead the next one.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command.args(arguments);
    command
}

/// A program, started at the root and with nothing on its standard input.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs it, its output shown as it comes.
pub(crate) fn run(command: &mut Command) -> Outcome {
    match command.status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("{}: {status}", words(command))),
        Err(error) => Outcome::Failed(format!("{} can't be started: {error}", words(command))),
    }
}

/// Runs it to its end, shows what it wrote to its standard output, and gives that too.
pub(crate) fn show(command: &mut Command) -> (Outcome, String) {
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            print!("{said}");
            let outcome = if output.status.success() {
                Outcome::Passed
            } else {
                Outcome::Failed(format!("{}: {}", words(command), output.status))
            };
            (outcome, said)
        }
        Err(error) => {
            let why = format!("{} can't be started: {error}", words(command));
            (Outcome::Failed(why), String::new())
        }
    }
}

/// Runs it in silence: whether it is there and succeeds.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs it and gives its standard output, whatever its exit code, if it wrote any text.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::inherit()).output().ok()?;
    String::from_utf8(output.stdout).ok().filter(|text| !text.trim().is_empty())
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}
