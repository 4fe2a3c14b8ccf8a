//! Running other programs from the root of the workspace.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::report::Outcome;

/// How long a program that was killed gets to be gone: one that is stuck in a driver may never be.
const LAST: Duration = Duration::from_secs(5);

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

/// Runs it to its end, shows what it writes to its standard output as it comes, and gives that too.
pub(crate) fn show(command: &mut Command) -> (Outcome, String) {
    show_within(command, Duration::MAX)
}

/// The same, and kills it if it is not over by then.
pub(crate) fn show_within(command: &mut Command, limit: Duration) -> (Outcome, String) {
    let start = Instant::now();
    let mut child = match command.stderr(Stdio::inherit()).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => {
            let why = format!("{} can't be started: {error}", words(command));
            return (Outcome::Failed(why), String::new());
        }
    };
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        let lines = lines(output);
        // It is over when nobody has its standard output any more.
        while let Ok(line) = lines.recv_timeout(limit.saturating_sub(start.elapsed())) {
            print!("{line}");
            said += &line;
        }
    }
    let outcome = match ended(&mut child, limit.saturating_sub(start.elapsed())) {
        Some(status) if status.success() => Outcome::Passed,
        Some(status) => Outcome::Failed(format!("{}: {status}", words(command))),
        None => {
            let _ = child.kill();
            ended(&mut child, LAST);
            let seconds = limit.as_secs();
            Outcome::Failed(format!("{} was not over after {seconds} s", words(command)))
        }
    };
    (outcome, said)
}

/// What comes out of a pipe, line by line, until its end.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
            line.clear();
        }
    });
    receiver
}

/// How a program ended, if it does within this time.
fn ended(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(None) if start.elapsed() < limit => thread::sleep(Duration::from_millis(20)),
            Ok(status) => return status,
            Err(_) => return None,
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = program("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_program_says_is_kept_whatever_it_ends_in() {
        let (outcome, said) = show(&mut sh("echo one; echo two"));
        assert_eq!((outcome, said.as_str()), (Outcome::Passed, "one\ntwo\n"));
        let (outcome, said) = show(&mut sh("echo one; exit 3"));
        assert!(matches!(outcome, Outcome::Failed(why) if why.contains("exit status: 3")));
        assert_eq!(said, "one\n");
        let (outcome, _) = show(&mut program("/nowhere/at/all"));
        assert!(matches!(outcome, Outcome::Failed(why) if why.contains("can't be started")));
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let (outcome, said) =
            show_within(&mut sh("echo one; exec sleep 1000"), Duration::from_millis(500));
        assert!(matches!(outcome, Outcome::Failed(why) if why.contains("was not over")));
        assert_eq!(said, "one\n");
    }
}
