//! Backends and stores plugged into one kernel cache.

mod activity;
mod artifact;
mod backend;
mod backend_cache;
mod device;
mod erased;
mod error;
mod language;
mod loaded;
mod outcome;
mod process;
mod profile;
mod runtime;
mod runtime_error;
mod settings;
mod spec;
mod spec_keys;
mod store;
mod stores;
mod table;
mod warning;

pub use artifact::{Artifact, Member};
pub use backend::{Backend, DeviceInfo, Target, Toolchain};
pub use backend_cache::BackendCache;
pub use device::Device;
pub use erased::{AnyBackend, AnyModule};
pub use error::BackendError;
pub use language::Language;
pub use loaded::Loaded;
pub use outcome::{Origin, Outcome};
pub use runtime::{Drains, IntoSpec, Kernel, Plans, Runtime, RuntimeBuilder};
pub use runtime_error::RuntimeError;
pub use settings::Settings;
pub use spec::{KernelSpec, KernelSpecBuilder, SpecError};
pub use store::{BuildFacts, Store, StoreError};
pub use warning::Warning;
