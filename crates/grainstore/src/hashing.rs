//! How the crate hashes: quickly, under a seed of the process's own. In a model the seed is fixed,
//! so that maps keep the same order in each run of it.

#[cfg(any(loom, shuttle))]
pub(crate) use foldhash::fast::FixedState as State;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use foldhash::fast::RandomState as State;

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, State>;
pub(crate) type HashSet<T> = std::collections::HashSet<T, State>;
