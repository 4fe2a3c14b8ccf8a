//! Finds the C compiler and runs it.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use grainstore_runtime::BackendError;

use crate::run::{RunError, Running};

/// Tried in this order where nobody chose.
const CANDIDATES: [&str; 3] = ["cc", "gcc", "clang"];

/// Variables that have a compiler write files beside its output.
const SIDE_EFFECTS: [&str; 2] = ["DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES"];

/// How the compiler was chosen.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The user's own choice, before `CC` and all others.
    path: Option<PathBuf>,
    running: Arc<Running>,
}

/// A compiler that is there.
#[derive(Debug)]
pub(crate) struct Compiler {
    program: PathBuf,
    arguments: Vec<String>,
    running: Arc<Running>,
}

impl Choice {
    /// `path`, or whatever is there.
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, running: Arc::default() }
    }

    /// Kills the compilers that run, and keeps others from starting.
    pub(crate) fn stop(&self) {
        self.running.stop();
    }

    fn compiler(&self, program: PathBuf, arguments: Vec<String>) -> Compiler {
        Compiler { program, arguments, running: Arc::clone(&self.running) }
    }

    /// The compiler that is there now.
    pub(crate) fn find(&self) -> Result<Compiler, BackendError> {
        let hint = "install one (on Debian the package `gcc` or `clang`, or `build-essential`), or \
                    name one with the variable `CC`";
        if let Some(path) = &self.path {
            let program = look_up(path.as_os_str()).ok_or_else(|| {
                missing(&path.to_string_lossy(), "the builder's `compiler`", hint)
            })?;
            return Ok(self.compiler(program, Vec::new()));
        }
        if let Some(text) = env::var("CC").ok().filter(|text| !text.trim().is_empty()) {
            let (program, arguments) =
                from_words(&text).ok_or_else(|| missing(&text, "the variable `CC`", hint))?;
            return Ok(self.compiler(program, arguments));
        }
        let found = CANDIDATES.iter().find_map(|name| look_up(OsStr::new(name)));
        let program = found.ok_or_else(|| {
            BackendError::missing("a C compiler (`cc`, `gcc` or `clang`, in `PATH`)", hint)
        })?;
        Ok(self.compiler(program, Vec::new()))
    }
}

impl Compiler {
    /// Its command line so far, in a surrounding that changes nothing unseen.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env("LC_ALL", "C");
        for name in SIDE_EFFECTS {
            command.env_remove(name);
        }
        command
    }

    /// Runs it, and turns what keeps it from running into an error.
    pub(crate) fn run(
        &self,
        command: &mut Command,
        deadline: Duration,
    ) -> Result<Output, BackendError> {
        let name = self.program.display();
        self.running.run(command, deadline).map_err(|error| match error {
            RunError::Deadline => BackendError::failed(
                format!("compiling with `{name}`"),
                format!(
                    "it had not ended after {deadline:?} and was killed; the builder's `deadline` \
                     gives it longer"
                ),
            ),
            RunError::Stopped => {
                BackendError::failed(format!("compiling with `{name}`"), "the backend was stopped")
            }
            RunError::Io(error) => BackendError::failed(format!("running `{name}`"), error),
        })
    }

    /// What it prints when it is asked this.
    pub(crate) fn ask(
        &self,
        arguments: &[&str],
        deadline: Duration,
    ) -> Result<Output, BackendError> {
        let output = self.run(self.command().args(arguments), deadline)?;
        if output.status.success() {
            return Ok(output);
        }
        let what = format!("`{} {}`", self.program.display(), arguments.join(" "));
        let log = String::from_utf8_lossy(&output.stderr);
        let message = format!("{}\n{}", output.status, log.trim());
        let message = message.trim_end();
        let hint = "is it a C compiler like gcc or clang? The variable `CC` names another";
        Err(BackendError::failed(what, format!("{message}\n{hint}")))
    }

    /// The files it consists of, as far as they are known: the program, and what that may run in
    /// turn (`ccache gcc`).
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let others = self.arguments.iter().filter_map(|word| look_up(OsStr::new(word)));
        std::iter::once(self.program.clone()).chain(others).collect()
    }

    /// What stands behind the program in its command line.
    pub(crate) fn arguments(&self) -> &[String] {
        &self.arguments
    }
}

/// A program by its path, or its name in `PATH`; or the same with arguments behind it.
fn from_words(text: &str) -> Option<(PathBuf, Vec<String>)> {
    if let Some(program) = look_up(OsStr::new(text.trim())) {
        return Some((program, Vec::new()));
    }
    let mut words = text.split_whitespace();
    let program = look_up(OsStr::new(words.next()?))?;
    Some((program, words.map(str::to_owned).collect()))
}

/// The file that would run under this name.
fn look_up(name: &OsStr) -> Option<PathBuf> {
    let runs = |path: &Path| path.is_file() && executable(path);
    let with_suffix = |path: PathBuf| {
        let suffixed = PathBuf::from(format!("{}{}", path.display(), env::consts::EXE_SUFFIX));
        [path, suffixed].into_iter().find(|path| runs(path))
    };
    let path = Path::new(name);
    if path.components().count() > 1 {
        // The compiler runs in a folder of its own, where a relative path leads nowhere.
        return with_suffix(std::path::absolute(path).ok()?);
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .find_map(|folder| with_suffix(std::path::absolute(folder.join(path)).ok()?))
}

fn executable(path: &Path) -> bool {
    #[cfg(unix)]
    return rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    return path.exists();
}

fn missing(what: &str, chosen_by: &str, hint: &str) -> BackendError {
    BackendError::missing(format!("the C compiler `{what}`, chosen by {chosen_by},"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_is_made_absolute() {
        assert!(look_up(OsStr::new("no-such-program-anywhere")).is_none());
        assert!(look_up(OsStr::new("sh")).is_some_and(|path| path.is_absolute()));
    }
}
