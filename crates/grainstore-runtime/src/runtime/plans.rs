//! Plans: what an application makes of kernels, in a bounded cache above theirs.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use grainstore::{Cache, PlanKey, Registration};

use super::Runtime;
use crate::RuntimeError;

/// A borrowing cache over a runtime's kernels: it dereferences to the [`Cache`] and is used as one.
///
/// It hears of teardowns through the runtime's hooks as long as a clone of this is there: the plans
/// of a device go before its kernels do, and a clear takes all of them. So a plan that holds kernels
/// never outlives them unseen, if it was looked up [on](Cache::on) its device.
pub struct Plans<P, K = PlanKey>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    P: Send + Sync + 'static,
{
    cache: Cache<K, P>,
    registration: Arc<Registration>,
}

impl Runtime {
    /// A cache of at most `capacity` plans over this runtime's kernels. A plan that is `idle` may be
    /// given up for another; when none is, the answer is
    /// [`Busy`](grainstore::Error::Busy), and [`wait_for_room`](Cache::wait_for_room) waits.
    ///
    /// # Errors
    /// [`RuntimeError::Setup`] for a capacity of zero.
    pub fn plans<P>(
        &self,
        capacity: usize,
        idle: impl Fn(&P) -> bool + Send + Sync + 'static,
    ) -> Result<Plans<P>, RuntimeError>
    where
        P: Send + Sync + 'static,
    {
        self.plans_by::<PlanKey, P>(capacity, idle)
    }

    /// The same, for plans with a key of the caller's own.
    ///
    /// # Errors
    /// As [`plans`](Self::plans).
    pub fn plans_by<K, P>(
        &self,
        capacity: usize,
        idle: impl Fn(&P) -> bool + Send + Sync + 'static,
    ) -> Result<Plans<P, K>, RuntimeError>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        P: Send + Sync + 'static,
    {
        let mut builder = Cache::builder().name("plans").capacity(capacity).idle(idle);
        for backend in self.backends() {
            builder = builder.borrows_from(backend.cache());
        }
        let cache = builder.build().map_err(RuntimeError::setup)?;
        let registration = Arc::new(cache.listen(self.hooks()));
        Ok(Plans { cache, registration })
    }
}

impl<P, K> Deref for Plans<P, K>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    P: Send + Sync + 'static,
{
    type Target = Cache<K, P>;

    fn deref(&self) -> &Cache<K, P> {
        &self.cache
    }
}

impl<P, K> Clone for Plans<P, K>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    P: Send + Sync + 'static,
{
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), registration: Arc::clone(&self.registration) }
    }
}

impl<P, K> fmt::Debug for Plans<P, K>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    P: Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plans").field("len", &self.cache.len()).finish_non_exhaustive()
    }
}
