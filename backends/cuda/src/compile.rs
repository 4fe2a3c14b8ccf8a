//! From a spec to code and its names, with NVRTC alone: no driver and no device.

use std::ffi::CString;

use grainstore_runtime::parts::with_defines;
use grainstore_runtime::{BackendError, KernelSpec, Language};

use crate::names::Names;
use crate::nvrtc::{Nvrtc, Program};
use crate::options;
use crate::target::{Architecture, Code};

/// What the source is called while it is compiled. The kernel's name is not part of the code, and
/// `__FILE__` is: so it is the same for all.
pub(crate) const SOURCE_NAME: &str = "grainstore-kernel.cu";

/// Where the compiler reports about name expressions.
const NAME_MAP: &str = "__nv_name_map";

/// NVRTC's statuses that say: the source, or an option, is wrong.
const WRONG_SOURCE: i32 = 6;
const WRONG_OPTION: i32 = 5;
/// The part of the compiler that lies in a file of its own could not be loaded.
const NO_BUILTINS: i32 = 7;

/// Code that a driver can load, and the names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiled {
    pub(crate) code: Code,
    pub(crate) bytes: Vec<u8>,
    pub(crate) names: Names,
}

/// Compiles CUDA C++. `allowed` are options that the user of the backend vouches for.
pub(crate) fn cuda_cpp(
    nvrtc: &Nvrtc,
    architecture: &Architecture,
    spec: &KernelSpec,
    allowed: &[String],
) -> Result<Compiled, BackendError> {
    check(spec)?;
    options::check(spec.name(), spec.options(), allowed)?;
    check_known(nvrtc, architecture)?;
    let options = arguments(architecture, spec)?;
    let program = program(nvrtc, spec)?;
    let entry = spec.entry().map(|entry| c_text(spec, "the entry point", entry)).transpose()?;
    if let Some(entry) = &entry {
        program.add_name(entry)?;
    }
    if let Err(refusal) = program.compile(&options) {
        let log = program.log();
        if entry.is_some() && log.contains(NAME_MAP) {
            return Err(without_entry(nvrtc, spec, &options));
        }
        if refusal.code == WRONG_OPTION && log.contains("--gpu-architecture") {
            return Err(unknown_letter(nvrtc, architecture));
        }
        return Err(not_compiled(refusal.code, &log, spec));
    }
    let mut names = Names::of_ptx(&program.ptx()?);
    if let (Some(expression), Some(entry)) = (&entry, spec.entry()) {
        let lowered = program.lowered(expression)?;
        names.entry = Some((entry.to_owned(), lowered));
    }
    let bytes = match architecture.code {
        Code::Cubin => program.cubin()?,
        Code::Ptx => program.ptx()?.into_bytes(),
    };
    // NVRTC succeeds and gives nothing where an option has it stop before the code is made.
    let lacks_entry =
        names.entry.as_ref().is_some_and(|(_, lowered)| !names.kernels.contains(lowered));
    if bytes.is_empty() || lacks_entry {
        let log = format!("{}\nthe compiler made no code for {architecture}", program.log());
        return Err(BackendError::Compile { log: log.trim_start().to_owned() });
    }
    Ok(Compiled { code: architecture.code, bytes, names })
}

/// Refuses what no language of this backend can do.
pub(crate) fn check(spec: &KernelSpec) -> Result<(), BackendError> {
    if let Some((constant, _)) = spec.constants().first() {
        let what = format!("the specialization constant `{constant}`");
        return Err(BackendError::unfit(spec, what, "CUDA has none; give it as a define"));
    }
    if spec.language() != Language::CudaCpp {
        let parts = [
            ("a header", spec.headers().first().map(|(name, _)| name)),
            ("a define", spec.defines().first().map(|(name, _)| name)),
            ("an option", spec.options().first()),
        ];
        if let Some((kind, name)) = parts.into_iter().find_map(|(kind, name)| Some((kind, name?))) {
            let hint = format!("{} is ready-made: leave it out", spec.language());
            return Err(BackendError::unfit(spec, format!("{kind}, `{name}`,"), &hint));
        }
        return Ok(());
    }
    let texts = spec.headers().iter().map(|(name, text)| (name.as_str(), &**text));
    for (name, text) in texts.chain([("its source", spec.source())]) {
        if text.contains(&0) {
            return Err(BackendError::unfit(
                spec,
                format!("a NUL character in `{name}`"),
                "CUDA C++ is text",
            ));
        }
        if let Some(path) = absolute_include(text) {
            return Err(BackendError::unfit(
                spec,
                format!("the `#include` of `{path}`"),
                "a file outside the key may change; give its content with the spec (a manifest's \
                 `headers`), under a name of your own",
            ));
        }
    }
    for (name, value) in spec.defines() {
        if !is_macro_name(name) || value.contains(['\n', '\r']) || value.ends_with('\\') {
            let hint = "a define is a name of letters, digits and underscores, and a value of one \
                        line";
            return Err(BackendError::unfit(spec, format!("the define `{name}`"), hint));
        }
    }
    Ok(())
}

/// The compiler looks up relative names among the headers only, as it is told. Absolute ones it
/// opens whatever it is told.
fn absolute_include(text: &[u8]) -> Option<String> {
    String::from_utf8_lossy(text).lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        let path = rest.trim_start().strip_prefix(['"', '<'])?;
        let drive = path.as_bytes().get(1) == Some(&b':');
        (path.starts_with(['/', '\\']) || drive)
            .then(|| path.split(['"', '>']).next().unwrap_or_default().to_owned())
    })
}

fn is_macro_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn check_known(nvrtc: &Nvrtc, architecture: &Architecture) -> Result<(), BackendError> {
    if nvrtc.known.contains(&architecture.number) {
        return Ok(());
    }
    let known: Vec<_> = nvrtc.known.iter().map(|number| format!("sm_{number}")).collect();
    let (major, minor) = nvrtc.version;
    let newer = nvrtc.known.last().is_some_and(|last| architecture.number > *last);
    let hint = if newer {
        let last = known.last().map_or("", String::as_str).replace("sm_", "compute_");
        format!("take a newer NVRTC, or the target `{last}`, which later devices run too")
    } else {
        "take an NVRTC of an earlier CUDA".to_owned()
    };
    Err(BackendError::unsupported(
        format!(
            "NVRTC {major}.{minor} makes no code for {architecture}, only for: {}",
            known.join(", ")
        ),
        hint,
    ))
}

/// The number is known, so it is the letter behind it that came later.
fn unknown_letter(nvrtc: &Nvrtc, architecture: &Architecture) -> BackendError {
    let (major, minor) = nvrtc.version;
    BackendError::unsupported(
        format!("NVRTC {major}.{minor} makes no code for {architecture}"),
        format!("take a newer NVRTC, or the target `sm_{}`", architecture.number),
    )
}

fn arguments(architecture: &Architecture, spec: &KernelSpec) -> Result<Vec<CString>, BackendError> {
    let own = [
        format!("--gpu-architecture={architecture}"),
        // Else it would look for headers in the process's current folder.
        "--no-source-include".to_owned(),
    ];
    own.into_iter()
        .chain(spec.options().iter().cloned())
        .map(|option| c_text(spec, "an option", &option))
        .collect()
}

fn program<'n>(nvrtc: &'n Nvrtc, spec: &KernelSpec) -> Result<Program<'n>, BackendError> {
    let headers = spec
        .headers()
        .iter()
        .map(|(name, text)| Ok((c_text(spec, "a header", name)?, c_text(spec, name, text)?)))
        .collect::<Result<Vec<_>, BackendError>>()?;
    let name = c_text(spec, "its name", SOURCE_NAME)?;
    // As options, defines would come before the compiler's own headers, which have templates, and one
    // called `T` would break every line of those.
    let source = c_text(spec, "its source", with_defines(spec, SOURCE_NAME))?;
    Ok(nvrtc.program(&name, &source, &headers)?)
}

/// Why the entry point is not there: because nothing compiles, or because only other kernels are.
fn without_entry(nvrtc: &Nvrtc, spec: &KernelSpec, options: &[CString]) -> BackendError {
    let compiled = program(nvrtc, spec).and_then(|program| {
        program
            .compile(options)
            .map_err(|refusal| not_compiled(refusal.code, &program.log(), spec))?;
        Ok(Names::of_ptx(&program.ptx()?))
    });
    match compiled {
        Ok(names) => BackendError::NoEntryPoint {
            entry: spec.entry().unwrap_or_default().to_owned(),
            available: names.kernels,
        },
        Err(error) => error,
    }
}

fn not_compiled(code: i32, log: &str, spec: &KernelSpec) -> BackendError {
    // It holds no paths and nothing random: headers go by the names they were given.
    let log = log.replace(SOURCE_NAME, &format!("{}.cu", spec.name()));
    match code {
        WRONG_SOURCE | WRONG_OPTION => BackendError::Compile { log },
        NO_BUILTINS => BackendError::missing(
            format!("a part of NVRTC ({})", log.trim().replace('\n', " ")),
            "put `libnvrtc-builtins` of the same version beside `libnvrtc`; the package that has one \
             has both",
        ),
        code => BackendError::failed(
            "nvrtcCompileProgram",
            format!("{} ({code})\n{log}", crate::status::nvrtc_name(code)).trim_end(),
        ),
    }
}

fn c_text(spec: &KernelSpec, what: &str, text: impl AsRef<[u8]>) -> Result<CString, BackendError> {
    CString::new(text.as_ref())
        .map_err(|_| BackendError::unfit(spec, format!("a NUL character in {what}"), "it is text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_includes_are_found() {
        for (text, path) in [
            ("#include </etc/passwd>", "/etc/passwd"),
            ("int x;\n  #  include \"/a/b.h\" // c", "/a/b.h"),
            ("#include <C:\\x.h>", "C:\\x.h"),
        ] {
            assert_eq!(absolute_include(text.as_bytes()).as_deref(), Some(path));
        }
        for text in ["#include \"a/b.h\"", "// #include </a>", "#define X \"/a\"", "#include A", ""]
        {
            assert_eq!(absolute_include(text.as_bytes()), None, "{text}");
        }
    }
}
