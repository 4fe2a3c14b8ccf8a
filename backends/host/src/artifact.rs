//! The artifact: the shared object, and a seal over it, since the system's loader runs whatever it is
//! given.

use grainstore_runtime::{Artifact, BackendError};

use crate::device;
use crate::object_file;

/// The member with the shared object, and the file that the compiler makes.
pub(crate) const OBJECT: &str = if cfg!(windows) {
    "kernel.dll"
} else if cfg!(target_vendor = "apple") {
    "kernel.dylib"
} else {
    "kernel.so"
};

/// The artifact of this shared object, sealed for the machine.
pub(crate) fn pack(bytes: Vec<u8>) -> Artifact {
    Artifact::new(OBJECT, bytes).sealed(device::target().as_str())
}

/// The shared object of an artifact that [`pack`] made, and its functions: what is not for this kind
/// of machine is refused here.
pub(crate) fn unpack(artifact: &Artifact) -> Result<(&[u8], Vec<String>), BackendError> {
    artifact.check_seal(device::target().as_str())?;
    let bytes = artifact.binary();
    let functions =
        object_file::functions(bytes).map_err(|reason| BackendError::InvalidArtifact { reason })?;
    Ok((bytes, functions))
}
