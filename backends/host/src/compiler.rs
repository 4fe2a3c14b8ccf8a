//! Finds the C compiler and reads from it who it is.

use std::collections::HashMap;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use grainstore_runtime::BackendError;

use crate::device;
use crate::run::{RunError, Running};

/// Tried in this order where nobody chose.
const CANDIDATES: [&str; 3] = ["cc", "gcc", "clang"];

/// Variables that change what the compilers of the field make of the same source and options.
const VARIABLES: [&str; 16] = [
    "CCC_OVERRIDE_OPTIONS",
    "CLANG_CONFIG_PATH",
    "CL",
    "COMPILER_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "INCLUDE",
    "LIB",
    "LIBRARY_PATH",
    "LD_RUN_PATH",
    "MACOSX_DEPLOYMENT_TARGET",
    "NIX_CFLAGS_COMPILE",
    "NIX_LDFLAGS",
    "SDKROOT",
    "_CL_",
];

/// Variables that have a compiler write files beside its output.
const SIDE_EFFECTS: [&str; 2] = ["DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES"];

/// How the compiler was chosen.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The user's own choice, before `CC` and all others.
    path: Option<PathBuf>,
    /// What the compilers have said, by their files.
    known: Mutex<Option<Arc<Known>>>,
    running: Arc<Running>,
}

/// A compiler that is there.
#[derive(Debug)]
pub(crate) struct Compiler {
    program: PathBuf,
    arguments: Vec<String>,
    running: Arc<Running>,
}

/// What a compiler said of itself, and the files that this holds for.
#[derive(Debug)]
pub(crate) struct Known {
    stamps: Vec<Stamp>,
    arguments: Vec<String>,
    /// Its first line of `--version`.
    pub(crate) version: String,
    machine: String,
    /// What `native` means in these options.
    native: Mutex<HashMap<Vec<String>, String>>,
}

/// A file, as far as a replaced one differs.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
}

impl Choice {
    /// `path`, or whatever is there.
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, known: Mutex::new(None), running: Arc::default() }
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

    /// What the compiler says of itself. It is asked once, and again when its file has changed.
    pub(crate) fn identify(
        &self,
        compiler: &Compiler,
        deadline: Duration,
    ) -> Result<Arc<Known>, BackendError> {
        let stamps = compiler.stamps();
        let mut slot = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*slot
            && known.stamps == stamps
            && known.arguments == compiler.arguments
        {
            return Ok(Arc::clone(known));
        }
        let known = Arc::new(Known {
            stamps,
            arguments: compiler.arguments.clone(),
            version: first_line(&compiler.ask(&["--version"], deadline)?.stdout),
            machine: first_line(&compiler.ask(&["-dumpmachine"], deadline)?.stdout),
            native: Mutex::default(),
        });
        *slot = Some(Arc::clone(&known));
        Ok(known)
    }
}

impl Known {
    /// The text that identifies the toolchain: equal text, equal code.
    pub(crate) fn text(&self) -> String {
        let mut parts = vec![self.version.clone(), self.machine.clone()];
        parts.extend(device::c_library());
        parts.extend(self.arguments.iter().map(|argument| format!("with {argument}")));
        for name in VARIABLES {
            if let Some(value) = env::var_os(name) {
                parts.push(format!("{name}={}", value.to_string_lossy()));
            }
        }
        parts.join("; ")
    }

    /// What these options, which say `native`, mean on this processor.
    pub(crate) fn native(
        &self,
        compiler: &Compiler,
        options: &[&str],
        deadline: Duration,
    ) -> Result<String, BackendError> {
        let key: Vec<String> = options.iter().map(ToString::to_string).collect();
        let mut native = self.native.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = native.get(&key) {
            return Ok(text.clone());
        }
        // Prints the commands that it would run, with `native` spelt out, and runs none.
        let mut arguments = options.to_vec();
        arguments.extend(["-###", "-E", "-x", "c", "-"]);
        let output = compiler.ask(&arguments, deadline)?;
        let text = spelt_out(&String::from_utf8_lossy(&output.stderr));
        if text.is_empty() {
            return Err(BackendError::unsupported(
                format!("`{}` does not say what {} means here", self.version, options.join(" ")),
                "name the processor, as in `-march=x86-64-v3`",
            ));
        }
        native.insert(key, text.clone());
        Ok(text)
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

    fn ask(&self, arguments: &[&str], deadline: Duration) -> Result<Output, BackendError> {
        let output = self.run(self.command().args(arguments), deadline)?;
        if output.status.success() {
            return Ok(output);
        }
        let what = format!("`{} {}`", self.program.display(), arguments.join(" "));
        let log = String::from_utf8_lossy(&output.stderr);
        let message = format!("{}\n{}", output.status, log.trim());
        Err(BackendError::failed(what, format!("{message}\nis it a C compiler like gcc or clang?")))
    }

    /// The program, and what it may run in turn (`ccache gcc`).
    fn stamps(&self) -> Vec<Stamp> {
        let others = self.arguments.iter().filter_map(|word| look_up(OsStr::new(word)));
        std::iter::once(self.program.clone())
            .chain(others)
            .map(|path| {
                let facts = path.metadata().ok();
                Stamp {
                    length: facts.as_ref().map_or(0, std::fs::Metadata::len),
                    modified: facts.and_then(|facts| facts.modified().ok()),
                    path,
                }
            })
            .collect()
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

fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().trim().to_owned()
}

/// The processor in the command lines that a driver prints: gcc's `-march=znver3 -mavx2 ..` or
/// clang's `-target-cpu znver3 -target-feature +avx2 ..`, without what is switched off.
fn spelt_out(printed: &str) -> String {
    let (mut gcc, mut clang) = (Vec::new(), Vec::new());
    // Command lines are indented; gcc repeats the unexpanded options in lines that are not.
    for line in printed.lines().filter(|line| line.starts_with(' ')) {
        let mut words = line.split_whitespace().map(|word| word.trim_matches('"'));
        while let Some(word) = words.next() {
            match word {
                "--param" => gcc.extend(words.next()),
                "-target-cpu" | "-tune-cpu" | "-target-feature" => {
                    clang.extend(words.next().filter(|value| !value.starts_with('-')));
                }
                _ if word.ends_with("=native") || word.starts_with("-mno-") => {}
                _ if word.starts_with("-m") => gcc.push(word),
                _ => {}
            }
        }
    }
    // What clang's command lines hold besides is about other things.
    if clang.is_empty() { gcc.join(" ") } else { clang.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gcc_spells_native_out() {
        let printed = "Target: x86_64-linux-gnu\nCOLLECT_GCC_OPTIONS='-march=native' '-E'\n \
                       /usr/lib/cc1 -E -quiet - \"-march=znver3\" -mavx2 -mno-xop --param \
                       \"l1-cache-size=32\" \"-mtune=znver3\" -quiet\n";
        assert_eq!(spelt_out(printed), "-march=znver3 -mavx2 l1-cache-size=32 -mtune=znver3");
    }

    #[test]
    fn clang_spells_native_out() {
        let printed = "clang version 14\n \"/usr/bin/clang\" \"-cc1\" \"-mframe-pointer=all\" \"-target-cpu\" \"znver3\" \
                       \"-target-feature\" \"+avx2\" \"-target-feature\" \"-xop\"\n";
        assert_eq!(spelt_out(printed), "znver3 +avx2");
    }

    #[test]
    fn a_relative_path_is_made_absolute() {
        assert!(look_up(OsStr::new("no-such-program-anywhere")).is_none());
        assert!(look_up(OsStr::new("sh")).is_some_and(|path| path.is_absolute()));
    }
}
