//! Runs a compiler to its end, to its deadline, or until everything is stopped.

use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a killed compiler may take to let go of its pipes.
const GRACE: Duration = Duration::from_secs(5);

/// Why there is no output.
pub(crate) enum RunError {
    /// It did not end in time, and was killed.
    Deadline,
    /// Everything was stopped: it was killed, or not even started.
    Stopped,
    /// It could not be started, or its output could not be read.
    Io(io::Error),
}

/// The compilers of one backend that run just now.
#[derive(Debug, Default)]
pub(crate) struct Running {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    /// Each is the leader of a process group.
    programs: Vec<u32>,
}

impl Running {
    /// Runs `command` and collects what it prints. When `deadline` has passed, the program is killed
    /// and everything that it started with it.
    pub(crate) fn run(
        &self,
        command: &mut Command,
        deadline: Duration,
    ) -> Result<Output, RunError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        {
            // A group of its own, so that one signal reaches the driver's children too.
            std::os::unix::process::CommandExt::process_group(command, 0);
        }
        let child = {
            // Under the lock, so that a stop either sees the program or keeps it from starting.
            let mut state = self.lock();
            if state.stopped {
                return Err(RunError::Stopped);
            }
            let child = command.spawn().map_err(RunError::Io)?;
            state.programs.push(child.id());
            child
        };
        let id = child.id();
        let (sender, ended) = mpsc::channel();
        let waiter = thread::Builder::new().name("grainstore-host".into()).spawn(move || {
            // Nobody listens any more when the child holds on to its pipes even after its death.
            let _ = sender.send(child.wait_with_output());
        });
        let output = match waiter.map(|_| ended.recv_timeout(deadline)) {
            Ok(Ok(output)) => output.map_err(RunError::Io),
            Ok(Err(RecvTimeoutError::Timeout)) => {
                kill(id);
                // Until it is gone, it may still write into the folder that the caller removes next.
                let _ = ended.recv_timeout(GRACE);
                Err(RunError::Deadline)
            }
            Ok(Err(RecvTimeoutError::Disconnected)) => {
                Err(RunError::Io(io::Error::other("the thread that waits for it is gone")))
            }
            Err(error) => {
                kill(id);
                Err(RunError::Io(error))
            }
        };
        let mut state = self.lock();
        state.programs.retain(|program| *program != id);
        if state.stopped { Err(RunError::Stopped) } else { output }
    }

    /// Kills what runs, with everything that it started, and lets nothing start any more.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        for program in &state.programs {
            kill(*program);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut command = shell("echo out; echo err >&2; exit 3");
        let Ok(output) = Running::default().run(&mut command, GRACE) else {
            panic!("the shell did not run");
        };
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.stderr, b"err\n");
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn a_hang_is_killed() {
        let mut hang = shell("sleep 3600; :");
        let ran = Running::default().run(&mut hang, Duration::from_millis(50));
        assert!(matches!(ran, Err(RunError::Deadline)));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let mut command = Command::new("/nowhere/cc");
        assert!(matches!(Running::default().run(&mut command, GRACE), Err(RunError::Io(_))));
    }

    #[test]
    fn a_stop_kills_what_runs_and_lets_nothing_start() {
        let running = Running::default();
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there");
        assert!(made.success());
        thread::scope(|scope| {
            // Opening a pipe to write waits for who reads it: that is how we know it runs.
            let mut hang = shell(&format!("echo > {}; sleep 3600", pipe.display()));
            let running = &running;
            let ran = scope.spawn(move || running.run(&mut hang, Duration::from_secs(3600)));
            std::fs::read(&pipe).expect("it is a pipe");
            running.stop();
            assert!(matches!(ran.join(), Ok(Err(RunError::Stopped))));
        });
        let late = running.run(&mut shell("exit 0"), GRACE);
        assert!(matches!(late, Err(RunError::Stopped)));
    }
}
