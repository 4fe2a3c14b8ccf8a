//! One run of the compiler, in a private folder, from a spec to the bytes of a shared object.

use std::fs;
use std::io;
use std::path::{Component, Path};
use std::process::Output;

use grainstore_runtime::{BackendError, KernelSpec, Language};

use crate::artifact::OBJECT;
use crate::builder::Settings;
use crate::compiler::Compiler;
use crate::log;
use crate::options;
use crate::scratch::Scratch;

/// The source's file. The kernel's name is not part of the code, and `__FILE__` is: so it is the
/// same for all, and unlike any name in a log that would have to stay.
pub(crate) const SOURCE_FILE: &str = "grainstore-kernel.c";

/// The folder of the headers.
pub(crate) const HEADERS: &str = "grainstore-headers";

/// Lists the files that the compiler read, but for system headers.
const DEPENDENCIES: &str = "grainstore-kernel.d";

/// What every kernel is compiled with, before its own options.
const DEFAULTS: [&str; 5] = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fdiagnostics-color=never"];

/// Equal keys are equal code, so a kernel must not hold the time of its compilation.
const NO_TIME: [&str; 4] = [
    "-Wno-builtin-macro-redefined",
    "-D__DATE__=\"Jan  1 1970\"",
    "-D__TIME__=\"00:00:00\"",
    "-D__TIMESTAMP__=\"Thu Jan  1 00:00:00 1970\"",
];

/// Compiles.
pub(crate) fn compile(
    compiler: &Compiler,
    settings: &Settings,
    spec: &KernelSpec,
) -> Result<Vec<u8>, BackendError> {
    check(spec)?;
    let options = options::check(spec.name(), spec.options(), &settings.allowed)?;
    let folder = Scratch::new(settings.scratch.as_deref()).map_err(|error| {
        let place = settings.scratch.clone().unwrap_or_else(std::env::temp_dir);
        BackendError::failed(
            format!("making a private folder in {}", place.display()),
            format!("{error}; the variable `TMPDIR` names another place"),
        )
    })?;
    write_inputs(folder.path(), spec).map_err(|error| {
        BackendError::failed(format!("writing the source of kernel `{}`", spec.name()), error)
    })?;

    let mut command = compiler.command();
    // Its own temporary files go where ours are, and so go away with them.
    command.current_dir(folder.path()).env("TMPDIR", folder.path()).env("TMP", folder.path());
    command.args(DEFAULTS).args(NO_TIME).args(["-MMD", "-MF", DEPENDENCIES]);
    // Debugging information names the folder, which is another one each time.
    let real = folder.path().canonicalize().unwrap_or_else(|_| folder.path().to_owned());
    command.arg(format!("-ffile-prefix-map={}=.", real.display()));
    if cfg!(target_os = "linux") {
        // What is not defined anywhere is the compiler's to report, not the loader's.
        command.arg("-Wl,-z,defs");
    }
    if !spec.headers().is_empty() {
        command.args(["-I", HEADERS]);
    }
    for (name, value) in spec.defines() {
        command.arg(format!("-D{name}={value}"));
    }
    command.args(&options.compile).args(["-o", OBJECT, SOURCE_FILE]);
    command.args(&options.link).arg("-lm");

    let output = compiler.run(&mut command, settings.deadline)?;
    if !output.status.success() {
        return Err(failure(&output, folder.path(), spec.name()));
    }
    check_dependencies(folder.path(), spec.name())?;
    let result = folder.path().join(OBJECT);
    fs::read(&result).map_err(|error| {
        BackendError::failed("the compiler", format!("it succeeded but left no {OBJECT}: {error}"))
    })
}

/// Refuses what this backend cannot do, and names that would lead out of the private folder.
fn check(spec: &KernelSpec) -> Result<(), BackendError> {
    let name = spec.name();
    if spec.language() != Language::C {
        return Err(BackendError::wrong_language(spec, "the host backend takes C"));
    }
    if let Some((constant, _)) = spec.constants().first() {
        return Err(BackendError::unsupported(
            format!("kernel `{name}` has the specialization constant `{constant}`"),
            "C has none; give it as a define",
        ));
    }
    for (header, _) in spec.headers() {
        let plain = Path::new(header).components().all(|part| matches!(part, Component::Normal(_)));
        if header.is_empty() || header.contains(['\\', '\0']) || !plain {
            return Err(BackendError::unfit(
                spec,
                format!("the header name `{header}`"),
                "a header's name is a relative path without `.` and `..`, as in `math/common.h`",
            ));
        }
    }
    for (define, value) in spec.defines() {
        let text = format!("{define}{value}");
        if define.is_empty() || define.contains('=') || text.contains(['\0', '\n']) {
            return Err(BackendError::unfit(
                spec,
                format!("the define `{define}`"),
                "a define is a name without `=`, and a value of one line",
            ));
        }
    }
    Ok(())
}

fn write_inputs(folder: &Path, spec: &KernelSpec) -> io::Result<()> {
    fs::write(folder.join(SOURCE_FILE), spec.source())?;
    for (name, content) in spec.headers() {
        let path = folder.join(HEADERS).join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, content)?;
    }
    Ok(())
}

fn failure(output: &Output, folder: &Path, kernel: &str) -> BackendError {
    let mut log = log::readable(&output.stderr, folder, kernel);
    if output.status.code().is_none() || log.trim().is_empty() {
        // Killed by a signal, or silent: the log alone would not say that it failed.
        log.push_str(&format!("{kernel}.c: the compiler failed ({})\n", output.status));
    }
    BackendError::Compile { log }
}

/// Refuses a source that read files of which the key knows nothing.
fn check_dependencies(folder: &Path, kernel: &str) -> Result<(), BackendError> {
    let text = fs::read_to_string(folder.join(DEPENDENCIES))
        .map_err(|error| BackendError::failed("reading which files the compiler read", error))?;
    match foreign_dependency(&text) {
        None => Ok(()),
        Some(file) => Err(BackendError::unsupported(
            format!("kernel `{kernel}` includes `{file}`, which is not among its headers"),
            "give the header's content with the spec (a manifest's `headers`), under the name that \
             `#include` uses",
        )),
    }
}

/// The first file in a rule for `make` that is neither the source nor one of the spec's headers.
fn foreign_dependency(rule: &str) -> Option<String> {
    let (_, files) = rule.split_once(": ")?;
    // Spaces in names are escaped; ends of lines are escaped spaces between names.
    let files = files.replace("\\\n", "\n").replace("\\ ", "\u{1}");
    files.split_whitespace().map(|file| file.replace('\u{1}', " ")).find(|file| !is_ours(file))
}

fn is_ours(file: &str) -> bool {
    let mut inside = Vec::new();
    for part in Path::new(file).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => inside.push(name),
            Component::ParentDir if inside.pop().is_some() => {}
            _ => return false,
        }
    }
    match inside.as_slice() {
        [file] => *file == SOURCE_FILE,
        [folder, ..] => *folder == HEADERS,
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_files_are_found_in_the_rule() {
        let ours = "kernel.so: grainstore-kernel.c \\\n grainstore-headers/a\\ b.h \\\n \
                    grainstore-headers/sub/../c.h\n";
        assert_eq!(foreign_dependency(ours), None);
        for file in ["/etc/secret.h", "../up.h", "grainstore-headers/../../up.h", "beside.h"] {
            let rule = format!("kernel.so: grainstore-kernel.c {file}\n");
            assert_eq!(foreign_dependency(&rule).as_deref(), Some(file));
        }
    }
}
