//! Caches above and below each other: before a cache answers `Busy`, those whose values close over
//! its own give up idle ones.

use super::victim::{Refused, Search};
use super::waits;
use super::{Core, Key};
use crate::sync::{Arc, Weak};

/// A cache whose values close over another's, as that other one sees it.
pub(crate) trait Borrower: Send + Sync {
    /// Releases the least recently used idle value. False if there is none.
    fn give_up_one(&self) -> bool;

    /// Releases the retired values that have become idle; they may pin the other's. Whether some
    /// are left that nobody pins.
    fn reap_retired(&self) -> bool;
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// Has the caches whose values close over ours give up an idle one, as long as that can free a
    /// place: only a value that somebody pins can become free by it.
    pub(crate) fn borrowers_give_up(&self) -> bool {
        {
            let ledger = self.ledger();
            let retired = ledger.retired - ledger.limbo.len().min(ledger.retired);
            let pinned =
                ledger.resident - ledger.ordered() + retired.saturating_sub(ledger.releasing);
            if pinned == 0 {
                return false;
            }
        }
        self.live_borrowers().iter().any(|borrower| borrower.give_up_one())
    }

    /// Has the caches above release what they have retired. Whether some of it is left that nobody
    /// pins, so that it is worth asking again.
    pub(crate) fn reap_borrowers(&self) -> bool {
        // All of them, also when the first has something left.
        self.live_borrowers().iter().filter(|borrower| borrower.reap_retired()).count() > 0
    }

    fn live_borrowers(&self) -> Vec<Arc<dyn Borrower>> {
        let mut borrowers = self.borrowers.lock();
        borrowers.retain(|borrower| borrower.strong_count() > 0);
        borrowers.iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn add_borrower(&self, borrower: Weak<dyn Borrower>) {
        let mut borrowers = self.borrowers.lock();
        // Those that are gone hold memory as long as they stand here.
        borrowers.retain(|borrower| borrower.strong_count() > 0);
        borrowers.push(borrower);
    }
}

impl<K: Key, V: Send + Sync + 'static> Borrower for Core<K, V> {
    fn give_up_one(&self) -> bool {
        if waits::is_inside_reap(self.id) || !self.may_release() {
            return false;
        }
        // What was retired while busy, and is idle now, pins as well as what is resident.
        if self.reap() > 0 {
            return true;
        }
        let mut refused = Refused::default();
        loop {
            let mut ledger = self.ledger();
            let victim = match self.search(&mut ledger, &mut refused, true) {
                Search::Victim(victim) => {
                    drop(ledger);
                    Some(victim)
                }
                Search::Ask(index, stamp) => {
                    drop(ledger);
                    self.question(index, stamp, &mut refused)
                }
                Search::Undecided | Search::Nothing => {
                    drop(ledger);
                    // What stands above us may pin what we could give up.
                    if self.borrowers_give_up() {
                        continue;
                    }
                    return false;
                }
            };
            if let Some(victim) = victim {
                self.evict(victim, None);
                return true;
            }
        }
    }

    fn reap_retired(&self) -> bool {
        self.reap();
        let above = self.reap_borrowers();
        above || !self.ledger().limbo.is_empty()
    }
}

/// So that `Weak<Core<K, V>>` can be handed to the cache below.
pub(crate) fn as_borrower<K: Key, V: Send + Sync + 'static>(
    core: &Arc<Core<K, V>>,
) -> Weak<dyn Borrower> {
    let weak: Weak<Core<K, V>> = Arc::downgrade(core);
    weak
}
