//! Bundles: chosen artifacts in one file, to be shipped in an image and used where they lie.
//!
//! A bundle is a tar archive laid out as a store is, so that every tool can open it, and an image
//! layer of it mounts as a store. Its first entry is an index, by which an artifact is found without
//! going through the archive. Packing the same artifacts gives the same bytes on every machine.

mod index;
mod oci;
mod pack;
mod read;

use std::path::PathBuf;

pub(crate) use read::Bundle;

/// What [`ArtifactStore::pack`](crate::ArtifactStore::pack) wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packed {
    /// Where.
    pub path: PathBuf,
    /// How many artifacts.
    pub artifacts: u64,
    /// How long the bundle is, in bytes.
    pub bytes: u64,
}

/// What [`ArtifactStore::unpack`](crate::ArtifactStore::unpack) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unpacked {
    /// How many artifacts are in the store now that were not, or not whole.
    pub added: u64,
    /// How many were there already.
    pub present: u64,
    /// Those of the bundle that are broken, with the reason. They were left out.
    pub rejected: Vec<(grainstore::Fingerprint, crate::Rejection)>,
}
