//! Who makes the code of a kernel, as keys say it: the compiler, in its own words.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use grainstore_runtime::BackendError;

use crate::compiler::Compiler;
use crate::device;

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

/// What the compiler has said of itself, kept until its file changes.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    latest: Mutex<Option<Arc<Identity>>>,
}

/// What a compiler said of itself, and the files that this holds for.
#[derive(Debug)]
pub(crate) struct Identity {
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

impl Identities {
    /// What this compiler says of itself. It is asked once, and again when its file has changed.
    pub(crate) fn of(
        &self,
        compiler: &Compiler,
        deadline: Duration,
    ) -> Result<Arc<Identity>, BackendError> {
        let stamps: Vec<_> = compiler.files().into_iter().map(Stamp::of).collect();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = &*latest
            && identity.stamps == stamps
            && identity.arguments == compiler.arguments()
        {
            return Ok(Arc::clone(identity));
        }
        let identity = Arc::new(Identity {
            stamps,
            arguments: compiler.arguments().to_vec(),
            version: first_line(&compiler.ask(&["--version"], deadline)?.stdout),
            machine: first_line(&compiler.ask(&["-dumpmachine"], deadline)?.stdout),
            native: Mutex::default(),
        });
        *latest = Some(Arc::clone(&identity));
        Ok(identity)
    }
}

impl Identity {
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

impl Stamp {
    fn of(path: PathBuf) -> Self {
        let facts = path.metadata().ok();
        Self {
            length: facts.as_ref().map_or(0, std::fs::Metadata::len),
            modified: facts.and_then(|facts| facts.modified().ok()),
            path,
        }
    }
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
        let printed = "clang version 14\n \"/usr/bin/clang\" \"-cc1\" \"-mframe-pointer=all\" \
                       \"-target-cpu\" \"znver3\" \"-target-feature\" \"+avx2\" \
                       \"-target-feature\" \"-xop\"\n";
        assert_eq!(spelt_out(printed), "znver3 +avx2");
    }
}
