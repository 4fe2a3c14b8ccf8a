//! This executable, started again: for what only another process can show.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::Subject;
use crate::battery::contained;
use crate::checks;
use crate::trouble::{Check, Trouble};

/// The task that the new process is started for.
const TASK: &str = "GRAINSTORE_CONFORMANCE_TASK";

/// The folder that both processes know.
const FOLDER: &str = "GRAINSTORE_CONFORMANCE_FOLDER";

/// Files in that folder: what came of the task, where it is just now, what the process printed.
const VERDICT: &str = "verdict";
const STEP: &str = "step";
const STDERR: &str = "stderr";

/// A process that has not ended by then hangs.
const BOUND: Duration = Duration::from_secs(300);

/// Does this task in a new process, which has to end in good order.
pub(crate) fn run(task: &str, folder: &Path) -> Check {
    let process = Command::new(env::current_exe()?)
        // The same arguments, so that a program finds its way to the battery again.
        .args(env::args_os().skip(1))
        .env(TASK, task)
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(folder.join(STDERR))?)
        .spawn()?;
    let status = wait(process)?;
    let said = fs::read_to_string(folder.join(VERDICT)).unwrap_or_default();
    let (kind, text) = said.split_once('\n').unwrap_or_default();
    match kind {
        "passed" if status.is_some_and(|status| status.success()) => Ok(()),
        "absent" => Err(Trouble::Absent(text.to_owned())),
        "cannot" => Err(Trouble::Cannot(text.to_owned())),
        "failed" => Err(Trouble::failed(text)),
        verdict => Err(Trouble::Failed(obituary(folder, status, verdict == "passed"))),
    }
}

/// How a process ended that should have ended otherwise.
fn obituary(folder: &Path, status: Option<ExitStatus>, done: bool) -> String {
    let read = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let how = match status {
        Some(status) => format!("ended with {status}"),
        None => format!("had not ended after {BOUND:?}, and was killed"),
    };
    let place = match (done, read(STEP)) {
        (true, _) => "after all was done, at its exit".to_owned(),
        (false, step) if step.is_empty() => {
            "before it came to the battery, which must be the first thing in its `main`".to_owned()
        }
        (false, step) => format!("at: {step}"),
    };
    let last: Vec<_> = read(STDERR).lines().rev().take(10).map(str::to_owned).collect();
    let last: Vec<_> = last.into_iter().rev().collect();
    format!("a new process {how} {place}\n{}", last.join("\n")).trim_end().to_owned()
}

/// Waits for its end; `None` when that does not come.
fn wait(mut process: Child) -> io::Result<Option<ExitStatus>> {
    let (ended, end) = mpsc::channel();
    let stdout = process.stdout.take();
    thread::spawn(move || {
        // The pipe comes to its end with the process.
        if let Some(mut stdout) = stdout {
            let _ = stdout.read_to_end(&mut Vec::new());
        }
        let _ = ended.send(());
    });
    if end.recv_timeout(BOUND).is_ok() {
        return process.wait().map(Some);
    }
    process.kill()?;
    process.wait()?;
    Ok(None)
}

/// Does the task that this process was started for, if it was started for one.
pub(crate) fn serve<S: Subject>(subject: &S) -> Option<ExitCode> {
    let task = env::var(TASK).ok()?;
    let folder = env::var_os(FOLDER)?;
    let folder = Path::new(&folder);
    step(folder, &task);
    let check = match checks::tasks::<S>().into_iter().find(|known| known.name == task) {
        Some(known) => contained(|| (known.run)(subject, folder)),
        None => Err(Trouble::failed(format!("there is no task `{task}`"))),
    };
    let verdict = match check {
        Ok(()) => "passed\n".to_owned(),
        Err(Trouble::Absent(text)) => format!("absent\n{text}"),
        Err(Trouble::Cannot(text)) => format!("cannot\n{text}"),
        Err(Trouble::Failed(text)) => format!("failed\n{text}"),
    };
    Some(match fs::write(folder.join(VERDICT), verdict) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// Notes where this process is, for the case that it does not come back.
pub(crate) fn step(folder: &Path, what: &str) {
    // A step that can't be noted is missed in a message only.
    let _ = fs::write(folder.join(STEP), what);
}
