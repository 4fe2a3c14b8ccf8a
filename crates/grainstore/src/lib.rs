//! The cache of compiled GPU kernels.

mod device;
mod key;

pub use device::{DeviceId, Family, Framework};
pub use key::{
    ContentId, Difference, ElementType, Fingerprint, KernelKey, KernelKeyBuilder, KeyError,
    ParseFingerprintError, PlanKey, PlanKeyBuilder, TensorDesc,
};
