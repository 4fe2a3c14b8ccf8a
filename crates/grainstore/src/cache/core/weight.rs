//! The bound on weight: what a new value costs, and who goes for it.
//!
//! A value's weight is known only when it is built. If enough idle values can go for it, they do,
//! the least recently used first; otherwise none does, and the value is handed out but not kept.
//! The weight of a value counts until it is released.

use super::victim::{Refused, Search};
use super::waits::Node;
use super::{Core, Key};
use crate::contain::contain;

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// Whether the value may stay; then its weight is taken, and what had to go for it is gone. The
    /// caller leads this build, of the entry.
    pub(crate) fn fit(&self, build: Node, index: u32, value: &V) -> bool {
        let Some((weigher, limit)) = self.config.weigher.as_ref().zip(self.config.max_weight)
        else {
            return true;
        };
        // SAFETY: the entry is being built by the caller, so it is not vacant.
        let key = unsafe { &self.entry(index).identity().key };
        let Ok(weight) = contain(|| weigher(key, value)) else { return false };
        if weight > limit {
            return false;
        }
        let may_release = self.may_release();
        let mut refused = Refused::default();
        let mut held: Vec<u32> = Vec::new();
        loop {
            let mut ledger = self.ledger();
            let total = ledger.weight_without(&held).checked_add(weight);
            if total.is_some_and(|total| total <= limit) {
                if let Some(lost) = self.confirm_all(&held) {
                    // Somebody pinned it meanwhile: go on without it.
                    held.retain(|&held| held != lost);
                    self.let_go(ledger, lost);
                    continue;
                }
                for &victim in &held {
                    self.end_ask(&mut ledger, victim);
                    self.take_out(&mut ledger, victim);
                }
                ledger.put_weight(index, weight);
                drop(ledger);
                held.into_iter().for_each(|victim| self.evict(victim, None));
                return true;
            }
            let found = if may_release {
                self.search(&mut ledger, &mut refused, false)
            } else {
                Search::Nothing
            };
            match found {
                Search::Ask(candidate, stamp) => {
                    drop(ledger);
                    if self.ask(candidate) {
                        self.ledger().leave_ask_to(candidate, build);
                        held.push(candidate);
                    } else {
                        refused.note(candidate, stamp, false);
                        self.let_go(self.ledger(), candidate);
                    }
                }
                Search::Victim(_) | Search::Undecided | Search::Nothing => {
                    drop(ledger);
                    held.into_iter().for_each(|held| self.let_go(self.ledger(), held));
                    return false;
                }
            }
        }
    }

    /// Makes all these held entries RELEASING, or none: then the one that was pinned meanwhile.
    /// Under the lock.
    fn confirm_all(&self, held: &[u32]) -> Option<u32> {
        let state = |index: u32| &self.entry(index).grain.state;
        let lost = held.iter().position(|&index| !state(index).confirm())?;
        // Nobody can have seen these: who did not find them waits for the lock.
        held[..lost].iter().for_each(|&index| state(index).revoke());
        Some(held[lost])
    }
}
