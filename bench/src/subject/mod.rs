//! What is measured: each cache in a file of its own, all behind one trait.

#[cfg(feature = "peers")]
pub mod dashmap;
#[cfg(feature = "peers")]
pub mod foyer;
#[cfg(feature = "peers")]
pub mod moka;
#[cfg(feature = "peers")]
pub mod mutex;
pub mod ours;
#[cfg(feature = "peers")]
pub mod papaya;
#[cfg(feature = "peers")]
pub mod quick_cache;

use std::ops::Deref;

use crate::keys::Key;

/// A cache from `K` to a number, used as its own guide says.
pub trait Subject<K>: Send + Sync + Sized + 'static {
    /// What it is called in tables and filters.
    const NAME: &'static str;

    /// Whether it keeps to a capacity. A plain map does not.
    const BOUNDED: bool = true;

    /// What keeps a value alive: an `Arc` for those that have nothing of their own.
    type Pin: Deref<Target = u64> + Send + 'static;

    /// An empty cache of this capacity, or an empty map.
    fn new(capacity: usize) -> Self;

    /// The value, which stays alive as long as what is returned; built if it is not there. For a map
    /// that has no such call, what its users write instead.
    fn get_or_build(&self, key: &K, build: impl FnMut() -> u64) -> Self::Pin;

    /// Takes everything out.
    fn clear(&self);

    /// Does what is left to do for values that were in use when they were taken out.
    fn reap(&self) {}
}

/// Something to be done with each subject in turn.
pub trait Visit<K> {
    /// Does it with this one.
    fn visit<S: Subject<K>>(&mut self);
}

/// Visits every subject, ours first.
pub fn each<K: Key>(visitor: &mut impl Visit<K>) {
    visitor.visit::<ours::Ours<K>>();
    #[cfg(feature = "peers")]
    {
        visitor.visit::<quick_cache::QuickCache<K>>();
        visitor.visit::<papaya::Papaya<K>>();
        visitor.visit::<dashmap::DashMap<K>>();
        visitor.visit::<foyer::Foyer<K>>();
        visitor.visit::<moka::Moka<K>>();
        visitor.visit::<mutex::Mutexed<K>>();
    }
}
