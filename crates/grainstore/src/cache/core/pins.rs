//! What a pin may ask of the core that it knows nothing else about.

use crate::sync::Arc;

/// The core of a cache, as its values see it: with the key's type left out.
pub(crate) trait Owner<V>: Send + Sync {
    /// The core's id.
    fn id(&self) -> u64;

    /// Called by the thread that holds the entry because it gave up the last pin of a value that
    /// was parked, retired or abandoned.
    fn decide(self: Arc<Self>, index: u32);
}
