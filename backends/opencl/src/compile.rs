//! From a spec to a built program and its binary.

use std::ffi::{CStr, CString};

use grainstore_runtime::parts::with_defines;
use grainstore_runtime::{BackendError, KernelSpec, Language};

use crate::context::Place;
use crate::log;
use crate::program::Program;
use crate::status::Failure;

/// What the source is called while it is compiled. The kernel's name is not part of the code, and
/// `__FILE__` is: so it is the same for all, and unlike any name in a log that would have to stay.
pub(crate) const SOURCE_NAME: &str = "grainstore-kernel.cl";

/// The statuses that say: the source, or an option, is wrong.
const NOT_COMPILED: [i32; 6] = [-11, -15, -17, -43, -66, -67];

/// The statuses that say: these bytes are no good. Those of a shortage are not among them.
const BAD_BINARY: [i32; 4] = [-11, -30, -42, -44];

/// Compiles a spec to a program that is built.
pub(crate) fn compile(
    place: &Place,
    spec: &KernelSpec,
    options: &CStr,
) -> Result<Program, BackendError> {
    check(spec)?;
    let program = Program::from_source(place, &complete(&with_defines(spec, SOURCE_NAME)))?;
    if spec.headers().is_empty() {
        program.build(options).map_err(|failure| not_compiled(failure, &program, spec))?;
        return Ok(program);
    }
    let names = spec
        .headers()
        .iter()
        .map(|(name, _)| CString::new(name.as_str()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| {
            BackendError::unfit(spec, "a header's name", "names have no NUL characters")
        })?;
    let mut headers = Vec::with_capacity(names.len());
    for (name, (_, content)) in names.iter().zip(spec.headers()) {
        headers.push((name.as_c_str(), Program::from_source(place, &complete(content))?));
    }
    program.compile(options, &headers).map_err(|failure| not_compiled(failure, &program, spec))?;
    program.link().map_err(|failure| not_compiled(failure, &program, spec))
}

/// Makes a program of a binary that [`compile`] and the driver made before.
pub(crate) fn load(place: &Place, binary: &[u8], options: &CStr) -> Result<Program, BackendError> {
    let program = Program::from_binary(place, binary).map_err(|failure| bad_binary(failure, ""))?;
    program.build(options).map_err(|failure| bad_binary(failure, &program.log()))?;
    Ok(program)
}

/// Refuses what this backend cannot do.
fn check(spec: &KernelSpec) -> Result<(), BackendError> {
    if spec.language() != Language::OpenClC {
        return Err(BackendError::wrong_language(spec, "the OpenCL backend takes OpenCL C"));
    }
    if let Some((constant, _)) = spec.constants().first() {
        let what = format!("the specialization constant `{constant}`");
        return Err(BackendError::unfit(spec, what, "OpenCL C has none; give it as a define"));
    }
    let texts = spec.headers().iter().map(|(_, content)| &**content).chain([spec.source()]);
    if texts.into_iter().any(|text| text.contains(&0)) {
        return Err(BackendError::unfit(spec, "a NUL character in the source", "OpenCL C is text"));
    }
    for (name, value) in spec.defines() {
        let line = format!("{name} {value}");
        let broken = name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '=');
        if broken || line.contains(['\n', '\r', '\0']) || line.ends_with('\\') {
            let hint = "a define is a name without `=`, and a value of one line";
            return Err(BackendError::unfit(spec, format!("the define `{name}`"), hint));
        }
    }
    Ok(())
}

/// Ends in a new line: the last directive of a text needs one.
fn complete(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    if text.last() != Some(&b'\n') {
        text.push(b'\n');
    }
    text
}

fn not_compiled(failure: Failure, program: &Program, spec: &KernelSpec) -> BackendError {
    if !failure.code.is_some_and(|code| NOT_COMPILED.contains(&code)) {
        return failure.into();
    }
    let headers: Vec<_> = spec.headers().iter().map(|(name, _)| name.as_str()).collect();
    let log = log::readable(&program.log(), spec.name(), &headers);
    // The log alone may be empty, or not say which option is meant.
    BackendError::Compile { log: format!("{}\n{failure}", log.trim_end()).trim_start().to_owned() }
}

fn bad_binary(failure: Failure, log: &str) -> BackendError {
    if !failure.code.is_some_and(|code| BAD_BINARY.contains(&code)) {
        return failure.into();
    }
    let log = log.trim();
    let reason = if log.is_empty() { failure.to_string() } else { format!("{failure}: {log}") };
    BackendError::InvalidArtifact { reason }
}
