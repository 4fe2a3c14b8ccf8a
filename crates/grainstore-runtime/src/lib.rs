//! Backends and stores plugged into one kernel cache.

mod artifact;
mod backend;
mod error;
mod language;
mod seal;
mod spec;
mod store;

pub use artifact::{Artifact, Member};
pub use backend::{Backend, DeviceInfo, Target, Toolchain};
pub use error::BackendError;
pub use language::Language;
pub use spec::{KernelSpec, KernelSpecBuilder, SpecError};
pub use store::{BuildFacts, Store, StoreError};
