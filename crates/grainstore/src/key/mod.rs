//! Keys: what identifies a compiled kernel.

/// Everything that changes a kernel's binary. (Replaced by the real one.)
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelKey;
