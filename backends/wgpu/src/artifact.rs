//! The artifact: the data of a pipeline cache, and a seal over it.

use grainstore_runtime::{Artifact, BackendError};

/// The member with the data.
const CACHE: &str = "pipeline-cache.bin";

/// The artifact of this data, sealed for `label`: target and toolchain.
pub(crate) fn pack(data: Vec<u8>, label: &str) -> Artifact {
    Artifact::new(CACHE, data).sealed(label)
}

/// The data of an artifact that [`pack`] made for the same label: what is not is refused here.
pub(crate) fn unpack<'a>(artifact: &'a Artifact, label: &str) -> Result<&'a [u8], BackendError> {
    artifact.check_seal(label)?;
    Ok(artifact.binary())
}
