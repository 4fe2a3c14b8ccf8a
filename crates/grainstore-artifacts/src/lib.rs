//! Compiled kernels on disk, verified whenever they are read.
//!
//! An [`ArtifactStore`] keeps [`Group`]s of named members under keys, one file each, in a private
//! folder that any number of threads and processes may use at once:
//!
//! - What is read is verified before anybody sees it: length, digest, fingerprint and key. A file
//!   that was cut, flipped, emptied or renamed is a miss, is counted, and is replaced by the next
//!   put. [`parse`] does this, a pure function over bytes.
//! - A file appears under its name in one step or not at all, whatever kills its writer.
//! - It is bounded, by default to 1 GiB on disk: what was not used for longest goes first.
//! - Who misses gets a lease with [`lookup_or_lease`](ArtifactStore::lookup_or_lease), and all others,
//!   of whatever process, wait for what it makes; within a bound, after which they make it too.
//! - Loading an artifact runs its code, so the folder is private, and a file is only read if it, its
//!   folder and the folders above could have been changed by nobody but this user and root.
//! - An artifact whose [loading](ArtifactStore::loading) ended the process twice is not handed out.
//! - Where the disk fails, is full or is not there, calls give an [`Error`] that says what to do,
//!   and a caller who can compile goes on without.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! use grainstore::KernelKey;
//! use grainstore_artifacts::{ArtifactStore, Group};
//!
//! let store = ArtifactStore::open(folder)?; // or `open_default()`: the user's cache folder
//! let key = KernelKey::builder("saxpy").target("sm_90a").toolchain("nvrtc 12.9.86")
//!     .language("cuda-c++").source("__global__ void saxpy() {}").build()?;
//! assert!(store.get(&key)?.is_none());
//! store.put(&key, &Group::new("saxpy.cubin", vec![1, 2, 3]))?;
//! assert_eq!(store.get(&key)?.unwrap().binary(), [1, 2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Shipped with an image
//! [`pack`](ArtifactStore::pack) writes chosen artifacts into a bundle, one reproducible file, and
//! [`pack_oci`](ArtifactStore::pack_oci) the same as an OCI image. A bundle, or a folder or mounted
//! image with what was in it, is used as a read-only [layer](Options::layer) below a store, or taken
//! into one by [`unpack`](ArtifactStore::unpack). A store that is opened with
//! [`use_only`](Options::use_only) changes nothing at all.
//!
//! # By itself
//! The store needs no runtime. Keys may come from anywhere: a [`ForeignKey`] is a namespace and bytes,
//! such as another compiler's own hash. Beside `get`, `put` and `remove` there are
//! [`put_if_absent`](ArtifactStore::put_if_absent), [`replace`](ArtifactStore::replace),
//! [`touch`](ArtifactStore::touch), [`scan`](ArtifactStore::scan) and
//! [`purge`](ArtifactStore::purge) for a namespace, and
//! [`materialize`](ArtifactStore::materialize), which writes a group's members as files. No call
//! starts a thread, and all work on in a forked child.
//!
//! The format of the files is described byte by byte in the project's `docs/artifact-format.md`.
//!
//! # Features
//! - `runtime` (default): the store is a `grainstore_runtime::Store`. Without it, this crate
//!   depends on `grainstore` alone.

#![forbid(unsafe_code)]

mod bundle;
mod error;
mod folder;
mod foreign;
mod format;
mod group;
mod key;
mod location;
mod lock;
mod positioned;
#[cfg(feature = "runtime")]
mod runtime;
mod store;
mod trust;

pub use bundle::{Packed, Unpacked};
pub use error::Error;
pub use foreign::{ForeignKey, NamespaceError};
pub use format::{Entry, Fields, Rejection, Signature, VERSION, encode, parse};
pub use group::{Group, MAX_MEMBERS, MAX_METADATA, MAX_NAME, Member, Refusal};
pub use key::EntryKey;
pub use location::{VARIABLE, default_folder};
pub use store::{
    ArtifactStore, DEFAULT_LIMIT, Fault, Found, Lease, LoadMark, LookUp, Options, Pruned, Scanned,
    Statistics,
};
pub use trust::Distrust;
