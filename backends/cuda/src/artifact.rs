//! The artifact: code, the names in it, and a seal over both.

use grainstore_runtime::{Artifact, BackendError};

use crate::compile::Compiled;
use crate::names::Names;
use crate::target::Code;

/// The member with the names.
const NAMES: &str = "names";

/// The artifact of this code, sealed for `label`: target and toolchain.
pub(crate) fn pack(compiled: &Compiled, label: &str) -> Artifact {
    Artifact::new(compiled.code.member(), compiled.bytes.clone())
        .with_member(NAMES, compiled.names.to_string().into_bytes())
        .sealed(label)
}

/// The code of an artifact that [`pack`] made for the same label: what is not is refused here.
pub(crate) fn unpack(artifact: &Artifact, label: &str) -> Result<(Code, Names), BackendError> {
    artifact.check_seal(label)?;
    let invalid = |reason: &str| BackendError::InvalidArtifact { reason: reason.to_owned() };
    let first = artifact.members().first().ok_or_else(|| invalid("it is empty"))?;
    let code = [Code::Cubin, Code::Ptx]
        .into_iter()
        .find(|code| code.member() == first.name)
        .ok_or_else(|| invalid("its first member is neither CUBIN nor PTX"))?;
    if first.bytes.is_empty() {
        return Err(invalid("its code is empty"));
    }
    let names = artifact
        .member(NAMES)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(Names::parse)
        .ok_or_else(|| invalid("it does not tell its kernels' names"))?;
    Ok((code, names))
}
