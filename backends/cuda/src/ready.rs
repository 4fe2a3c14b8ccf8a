//! Ready-made sources: PTX and CUBIN, of whatever compiler.

use std::ffi::CString;

use grainstore_runtime::{BackendError, KernelSpec, Language};

use crate::assembler::Refused;
use crate::compile::{self, Compiled};
use crate::context::Context;
use crate::cubin;
use crate::names::Names;
use crate::target::{Architecture, Code};

/// The code of a ready-made source; `context` has the driver assemble PTX for its device.
pub(crate) fn code(
    architecture: &Architecture,
    spec: &KernelSpec,
    context: Option<&Context>,
) -> Result<Compiled, BackendError> {
    compile::check(spec)?;
    let mut compiled = match spec.language() {
        Language::Ptx => ptx(architecture, spec, context)?,
        Language::Cubin => cubin(spec)?,
        _ => {
            let hint = "the CUDA backend takes CUDA C++, PTX and CUBIN";
            return Err(BackendError::wrong_language(spec, hint));
        }
    };
    if let Some(entry) = spec.entry() {
        if compiled.names.in_code(entry).is_none() {
            let available = compiled.names.kernels;
            return Err(BackendError::NoEntryPoint { entry: entry.to_owned(), available });
        }
        compiled.names.entry = Some((entry.to_owned(), entry.to_owned()));
    }
    Ok(compiled)
}

/// Machine code that the driver makes of ready-made PTX; or the PTX itself, where the target is PTX.
fn ptx(
    architecture: &Architecture,
    spec: &KernelSpec,
    context: Option<&Context>,
) -> Result<Compiled, BackendError> {
    let text = String::from_utf8_lossy(spec.source());
    let names = Names::of_ptx(&text);
    if architecture.code == Code::Ptx {
        return Ok(Compiled { code: Code::Ptx, bytes: spec.source().to_vec(), names });
    }
    let Some(context) = context else {
        return Err(BackendError::unfit(
            spec,
            "the ready-made PTX",
            "machine code is made of it by the driver, on the machine that has the device: warm it \
             there, or give it as CUBIN",
        ));
    };
    // A spec's text has no NUL.
    let text = CString::new(spec.source()).unwrap_or_default();
    let bytes = context.assemble(&text).map_err(not_taken)?;
    if bytes.is_empty() {
        return Err(BackendError::Compile { log: "the driver made no code of the PTX".to_owned() });
    }
    Ok(Compiled { code: Code::Cubin, bytes, names })
}

fn cubin(spec: &KernelSpec) -> Result<Compiled, BackendError> {
    let kernels = cubin::kernels(spec.source())
        .map_err(|what| BackendError::Compile { log: format!("`{}`: {what}", spec.name()) })?;
    let names = Names { entry: None, kernels };
    Ok(Compiled { code: Code::Cubin, bytes: spec.source().to_vec(), names })
}

/// The driver refused what was given as a source.
pub(crate) fn not_taken(Refused { failure, log }: Refused) -> BackendError {
    if failure.is_bad_image() {
        return BackendError::Compile { log: format!("{log}\n{failure}").trim_start().to_owned() };
    }
    failure.into()
}
