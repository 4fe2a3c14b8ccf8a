//! A list of listeners that stays whole while they run, whatever they do to it.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::error::HookError;
use crate::error::BoxError;
use crate::sync::{Arc, Mutex};

/// When a listener's turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Whoever keeps what others own: memos, plans, caches that borrow.
    Memo,
    /// A cache that owns its handles. It comes last, so that no memo holds what it releases.
    Owner,
}

/// A listener's place: by level, then by age.
pub(super) type Key = (Level, u64);

/// What is called. It gets the event's argument.
type Callback<A> = dyn Fn(&A) -> Result<(), BoxError> + Send + Sync;

/// The listeners of one kind of event.
///
/// A notification keeps no list of its own, only the key it has come to: it looks up the next one
/// each time. So whoever is unregistered before its turn is not found, and the lock is free while a
/// listener runs.
pub(super) struct Listeners<A> {
    /// Nothing that can panic, and no code of others, runs under this lock.
    list: Mutex<List<A>>,
}

struct List<A> {
    by_key: BTreeMap<Key, Arc<Callback<A>>>,
    /// The age of the next listener. Ages are not reused.
    next: u64,
}

impl<A> Listeners<A> {
    /// Adds a listener, behind all others of its level.
    pub(super) fn add(&self, level: Level, callback: Box<Callback<A>>) -> Key {
        let mut list = self.list.lock();
        let key = (level, list.next);
        list.next += 1;
        list.by_key.insert(key, Arc::from(callback));
        key
    }

    /// Calls every listener that is there now and still is when its turn comes.
    pub(super) fn notify(&self, argument: &A) -> Result<(), HookError> {
        let end = self.list.lock().next;
        let mut last = None;
        let mut outcome = Ok(());
        while let Some((key, callback)) = self.following(last, end) {
            last = Some(key);
            // A listener that was unregistered meanwhile is dropped at the end of this closure, and
            // its drop may panic just as its call may.
            let called = catch_unwind(AssertUnwindSafe(move || callback(argument)));
            let result = match called {
                Ok(result) => result.map_err(|error| HookError::Listener(Arc::from(error))),
                Err(panic) => Err(HookError::panicked(&*panic)),
            };
            outcome = outcome.and(result);
        }
        outcome
    }

    /// The first listener behind `last` that is older than `end`.
    fn following(&self, last: Option<Key>, end: u64) -> Option<(Key, Arc<Callback<A>>)> {
        let list = self.list.lock();
        let from = last.map_or(Unbounded, Excluded);
        let (key, callback) = list.by_key.range((from, Unbounded)).find(|(key, _)| key.1 < end)?;
        Some((*key, Arc::clone(callback)))
    }

    pub(super) fn len(&self) -> usize {
        self.list.lock().by_key.len()
    }
}

impl<A> Default for Listeners<A> {
    fn default() -> Self {
        Self { list: Mutex::new(List { by_key: BTreeMap::new(), next: 0 }) }
    }
}

/// A list from which a registration can take its listener, whatever the listener's argument.
pub(super) trait Unregister: Send + Sync {
    /// Removes the listener of this key, if it is still there.
    fn remove(&self, key: Key);
}

impl<A> Unregister for Listeners<A> {
    fn remove(&self, key: Key) {
        let removed = self.list.lock().by_key.remove(&key);
        // The listener's own drop may call the hooks: the lock must be free by now.
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::Hooks;

    type Log = Arc<Mutex<Vec<&'static str>>>;

    fn listener(log: &Log, entry: &'static str) -> impl Fn() -> Result<(), &'static str> + use<> {
        let log = Arc::clone(log);
        move || {
            log.lock().push(entry);
            Ok(())
        }
    }

    #[test]
    fn h2_memos_come_first_and_owners_last_whoever_registered_first() {
        let (hooks, log) = (Hooks::new(), Log::default());
        let _owner = hooks.on_clear_all_at(Level::Owner, listener(&log, "owner 1"));
        let _memo = hooks.on_clear_all(listener(&log, "memo 1"));
        let _other = hooks.on_clear_all_at(Level::Owner, listener(&log, "owner 2"));
        let _late = hooks.on_clear_all(listener(&log, "memo 2"));
        hooks.notify_clear_all().unwrap();
        assert_eq!(*log.lock(), ["memo 1", "memo 2", "owner 1", "owner 2"]);
    }

    /// Its place is still ahead of the notification, and yet it is not called.
    #[test]
    fn h2_an_owner_registered_meanwhile_by_a_memo_waits_too() {
        let (hooks, log) = (Hooks::new(), Log::default());
        let inner = hooks.clone();
        let in_listener = Arc::clone(&log);
        let _memo = hooks.on_clear_all(move || {
            inner.on_clear_all_at(Level::Owner, listener(&in_listener, "late owner")).forget();
            Ok::<(), &str>(())
        });
        let _owner = hooks.on_clear_all_at(Level::Owner, listener(&log, "owner"));
        hooks.notify_clear_all().unwrap();
        assert_eq!(*log.lock(), ["owner"]);
    }

    #[test]
    fn h1_joined_registrations_unregister_together() {
        let hooks = Hooks::new();
        let clear = hooks.on_clear_all(|| Ok::<(), &str>(()));
        let device = hooks.on_device_destroy_at(Level::Owner, |_| Ok::<(), &str>(()));
        let both = clear.and(device);
        assert_eq!((hooks.clear_all.len(), hooks.device_destroy.len()), (1, 1));
        drop(both);
        assert_eq!((hooks.clear_all.len(), hooks.device_destroy.len()), (0, 0));
    }
}
