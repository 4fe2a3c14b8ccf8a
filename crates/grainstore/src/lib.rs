//! The cache of compiled GPU kernels.

mod cache;
mod contain;
mod device;
mod error;
mod hooks;
mod key;
mod sync;
mod timer;

pub use cache::Cache;
pub use cache::builder::{Builder, ConfigError, Ownership, ReleaseOutcome};
pub use cache::drain::Drain;
pub use cache::event::{Event, EventKind};
pub use cache::pinned::Pinned;
pub use cache::slot::Slot;
pub use cache::statistics::Statistics;
pub use cache::view::View;
pub use device::{DeviceId, Family, Framework};
pub use error::{Error, ReleaseError};
pub use hooks::{HookError, Hooks, Registration};
pub use key::{
    ContentId, Difference, ElementType, Fingerprint, KernelKey, KernelKeyBuilder, KeyError,
    ParseFingerprintError, PlanKey, PlanKeyBuilder, TensorDesc,
};
