//! Where a kernel came from, for those who count.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where a kernel came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// It was in memory, or another caller was just building it.
    Memory,
    /// Loaded from the store of this name.
    Store(Arc<str>),
    /// Compiled.
    Compiled,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Store(name) => f.write_str(name),
            Self::Compiled => f.write_str("compiled"),
        }
    }
}

/// Where a kernel came from, and how long that took.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Where it came from.
    pub origin: Origin,
    /// From the request to the module: stores, compiler and loader, and waiting for others.
    pub elapsed: Duration,
    /// What of it the backend's compiler took, where it was compiled by this call.
    pub compile_time: Option<Duration>,
}
