//! Keys: what identifies a compiled kernel, or a plan made of kernels.
//!
//! A key holds everything that changes the result and nothing that does not. It is encoded and
//! hashed once, when it is made: after that a look-up hashes one `u64` and compares 32 bytes.

mod content;
mod difference;
mod element;
mod encoding;
mod error;
mod fingerprint;
mod hashed;
mod kernel;
mod overlap;
mod plan;
mod tensor;

pub use content::ContentId;
pub use difference::Difference;
pub use element::ElementType;
pub use error::KeyError;
pub use fingerprint::{Fingerprint, ParseFingerprintError};
pub use kernel::{KernelKey, KernelKeyBuilder};
pub use plan::{PlanKey, PlanKeyBuilder};
pub use tensor::TensorDesc;
