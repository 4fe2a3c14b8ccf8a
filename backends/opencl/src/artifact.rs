//! The artifact: the driver's own binary, and a seal over it.

use grainstore_runtime::{Artifact, BackendError};

/// The member with the binary.
const BINARY: &str = "kernel.bin";

/// The artifact of this binary, sealed for `label`: target and toolchain. None where the driver gives
/// no binary.
pub(crate) fn pack(binary: Vec<u8>, label: &str) -> Option<Artifact> {
    (!binary.is_empty()).then(|| Artifact::new(BINARY, binary).sealed(label))
}

/// The binary of an artifact that [`pack`] made for the same label: what is not is refused here.
pub(crate) fn unpack<'a>(artifact: &'a Artifact, label: &str) -> Result<&'a [u8], BackendError> {
    artifact.check_seal(label)?;
    Ok(artifact.binary())
}
