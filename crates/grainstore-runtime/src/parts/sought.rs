//! What is looked for until it is found.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A library with its devices, or a compiler: looked for when it is first wanted, again at the next
/// call where it was missing, since it may have been installed meanwhile, and kept once it is found.
pub struct Sought<T>(Mutex<Option<Arc<T>>>);

impl<T> Sought<T> {
    /// Not looked for yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// What was found, or is found now. Others who want it wait meanwhile.
    ///
    /// # Errors
    /// Those of `find`, which is called again the next time.
    pub fn get_or_find<E>(&self, find: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*slot {
            return Ok(Arc::clone(found));
        }
        let found = Arc::new(find()?);
        *slot = Some(Arc::clone(&found));
        Ok(found)
    }

    /// What was found; looks for nothing.
    #[must_use]
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has it looked for again the next time.
    pub fn forget(&self) {
        // Dropped after the lock: what was found may take its time, or ask for itself.
        let _found = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Found already.
impl<T> From<T> for Sought<T> {
    fn from(found: T) -> Self {
        Self(Mutex::new(Some(Arc::new(found))))
    }
}

impl<T> Default for Sought<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Sought<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sought").field(&self.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_for_until_it_is_found() {
        let sought = Sought::new();
        assert_eq!(sought.get_or_find(|| Err("missing")), Err("missing"));
        assert_eq!(sought.get(), None);
        let found = sought.get_or_find(|| Ok::<_, &str>(1)).unwrap();
        let again = sought.get_or_find(|| Err("not asked again")).unwrap();
        assert!(Arc::ptr_eq(&found, &again) && *found == 1);
        sought.forget();
        assert_eq!(*sought.get_or_find(|| Ok::<_, &str>(2)).unwrap(), 2);
        assert_eq!(Sought::from(3).get().as_deref(), Some(&3));
    }
}
