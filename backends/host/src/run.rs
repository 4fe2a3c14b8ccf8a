//! Runs a compiler to its end, or to its deadline.

use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long a killed compiler may take to let go of its pipes.
const GRACE: Duration = Duration::from_secs(5);

/// Why there is no output.
pub(crate) enum RunError {
    /// It did not end in time, and was killed.
    Deadline,
    /// It could not be started, or its output could not be read.
    Io(io::Error),
}

/// Runs `command` and collects what it prints. When `deadline` has passed, the program is killed
/// and everything that it started with it.
pub(crate) fn run(command: &mut Command, deadline: Duration) -> Result<Output, RunError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    {
        // A group of its own, so that one signal reaches the driver's children too.
        std::os::unix::process::CommandExt::process_group(command, 0);
    }
    let child = command.spawn().map_err(RunError::Io)?;
    let id = child.id();
    let (sender, ended) = mpsc::channel();
    let waiter = thread::Builder::new().name("grainstore-host".into()).spawn(move || {
        // Nobody listens any more when the child holds on to its pipes even after its death.
        let _ = sender.send(child.wait_with_output());
    });
    if let Err(error) = waiter {
        kill(id);
        return Err(RunError::Io(error));
    }
    match ended.recv_timeout(deadline) {
        Ok(output) => output.map_err(RunError::Io),
        Err(RecvTimeoutError::Timeout) => {
            kill(id);
            // Until it is gone, it may still write into the folder that the caller removes next.
            let _ = ended.recv_timeout(GRACE);
            Err(RunError::Deadline)
        }
        Err(RecvTimeoutError::Disconnected) => {
            Err(RunError::Io(io::Error::other("the thread that waits for it is gone")))
        }
    }
}

/// Kills the program of that number and its descendants.
fn kill(id: u32) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        // It may have ended by itself just now; then there is nothing to do.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    {
        let _ = Command::new("taskkill").args(["/T", "/F", "/PID", &id.to_string()]).output();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_it_prints_comes_back() {
        let Ok(output) = run(&mut shell("echo out; echo err >&2; exit 3"), GRACE) else {
            panic!("the shell did not run");
        };
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.stderr, b"err\n");
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn a_hang_is_killed_with_its_children() {
        // The inner shell outlives the outer one and would hold the pipes open for an hour.
        let mut hang = shell("sh -c 'sleep 3600; :' & wait; :");
        assert!(matches!(run(&mut hang, Duration::from_millis(50)), Err(RunError::Deadline)));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let mut command = Command::new("/nowhere/cc");
        assert!(matches!(run(&mut command, GRACE), Err(RunError::Io(_))));
    }
}
