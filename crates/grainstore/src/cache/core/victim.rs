//! Choosing a victim: the least recently used value that nobody pins and that `idle` calls idle.
//!
//! A victim is claimed, asked about under no lock, and then confirmed; a pin taken in between takes
//! the claim away. Where there is no `idle`, all three are one step.

use super::ledger::Ledger;
use super::state::Claim;
use super::{Core, Key};
use crate::hashing::HashMap;

/// How a search for a victim ended.
pub(crate) enum Search {
    /// The caller owns this entry, out of every list, and releases its value now.
    Victim(u32),
    /// The caller holds this entry, last used at that time, and asks about it.
    Ask(u32, u64),
    /// Nobody else can go, but somebody decides about an entry right now.
    Undecided,
    /// Every value in the order of use said busy.
    Nothing,
}

/// Who said busy in one search, by the last use that the answer is of.
#[derive(Default)]
pub(crate) struct Refused {
    answers: HashMap<u32, u64>,
    /// How often an answer came to nothing because the value was pinned or used meanwhile.
    overtaken: usize,
    /// Where in the order of use the search is.
    behind: Option<(u64, u32)>,
}

impl Refused {
    /// After so many, a search no longer asks again about what it has asked about.
    const PATIENCE: usize = 64;

    pub(crate) fn note(&mut self, index: u32, stamp: u64, idle: bool) {
        self.overtaken += usize::from(idle || self.answers.contains_key(&index));
        if !idle || self.overtaken > Self::PATIENCE {
            self.answers.insert(index, stamp);
        }
    }

    /// Whether to search once more because the cache has changed meanwhile.
    pub(crate) fn try_again(&mut self) -> bool {
        self.overtaken += 1;
        self.overtaken <= Self::PATIENCE
    }

    /// A value that was used since it said busy is asked again, within reason.
    fn contains(&self, index: u32, stamp: u64) -> bool {
        match self.answers.get(&index) {
            Some(&asked) => asked == stamp || self.overtaken > Self::PATIENCE,
            None => false,
        }
    }
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// Walks the order of use from its cold end to the first value that can go, or may. Without
    /// `take` it confirms nothing: what could go at once is then also held, to be asked about.
    ///
    /// A search goes on where its last question was, and starts over when it has come to the end.
    pub(crate) fn search(&self, ledger: &mut Ledger, refused: &mut Refused, take: bool) -> Search {
        let take = take && self.config.idle.is_none();
        if refused.behind.is_some() {
            let found = self.search_behind(ledger, refused, take);
            if matches!(found, Search::Victim(_) | Search::Ask(..)) {
                return found;
            }
            refused.behind = None;
        }
        self.search_behind(ledger, refused, take)
    }

    fn search_behind(&self, ledger: &mut Ledger, refused: &mut Refused, take: bool) -> Search {
        let mut undecided = !ledger.asks.is_empty();
        while let Some((stamp, index)) = ledger.next_in_order(refused.behind) {
            let entry = self.entry(index);
            let last_use = ledger.last_use(index);
            if last_use > stamp {
                ledger.dequeue(index);
                ledger.enqueue(index, last_use);
                // It comes later now, so that nothing is passed over; and what stands before it is not
                // walked over again for each such entry.
                refused.behind = Some((stamp, index));
                continue;
            }
            if refused.contains(index, stamp) {
                refused.behind = Some((stamp, index));
                continue;
            }
            match entry.grain.state.claim() {
                Claim::Claimed if self.announced_pins(ledger, index) => {
                    entry.grain.state.park_held();
                    ledger.dequeue(index);
                }
                Claim::Claimed if !take => {
                    // Before anybody can meet the hold: who does waits for this.
                    ledger.ask(index);
                    refused.behind = Some((stamp, index));
                    return Search::Ask(index, stamp);
                }
                Claim::Claimed if entry.grain.state.confirm() => {
                    self.take_out(ledger, index);
                    return Search::Victim(index);
                }
                Claim::Claimed => {
                    // Pinned since. Nothing parks or retires it under the lock: look at it again.
                    let _ = entry.grain.state.let_go();
                    continue;
                }
                Claim::Parked => ledger.dequeue(index),
                Claim::Held => undecided = true,
                Claim::Gone => debug_assert!(false, "only resident entries are ordered"),
            }
            refused.behind = Some((stamp, index));
        }
        if undecided { Search::Undecided } else { Search::Nothing }
    }

    /// Takes what is pinned out of the order of use, so that the figures of `Busy` are right.
    pub(crate) fn park_pinned(&self, ledger: &mut Ledger) {
        let mut behind = None;
        while let Some((stamp, index)) = ledger.next_in_order(behind) {
            behind = Some((stamp, index));
            let state = &self.entry(index).grain.state;
            match state.claim() {
                Claim::Parked => ledger.dequeue(index),
                Claim::Claimed if self.announced_pins(ledger, index) => {
                    state.park_held();
                    ledger.dequeue(index);
                }
                Claim::Claimed => drop(state.let_go()),
                Claim::Held | Claim::Gone => {}
            }
        }
    }

    /// Asks about an entry that the caller holds. If it is idle and still unpinned, it is the
    /// victim, and the caller owns it.
    pub(crate) fn question(&self, index: u32, stamp: u64, refused: &mut Refused) -> Option<u32> {
        let idle = self.ask(index);
        let mut ledger = self.ledger();
        if idle && self.entry(index).grain.state.confirm() {
            self.end_ask(&mut ledger, index);
            self.take_out(&mut ledger, index);
            return Some(index);
        }
        refused.note(index, stamp, idle);
        self.let_go(ledger, index);
        None
    }

    /// The entry, RELEASING now, leaves the cache; its place goes with it.
    pub(crate) fn take_out(&self, ledger: &mut Ledger, index: u32) {
        ledger.dequeue(index);
        self.index.remove(ledger, self.entry(index).hash(), index);
        ledger.resident -= 1;
        ledger.retired += 1;
        ledger.releasing += 1;
        ledger.statistics.evictions += 1;
        ledger.lift_weight(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;

    /// Whoever meets the hold has to know whom it waits for, or two could wait for each other.
    #[test]
    fn b5_what_is_held_to_be_asked_about_is_on_the_list_from_the_claim_on() {
        let cache = Cache::<u8, u8>::builder().capacity(1).idle(|_| true).build().unwrap();
        drop(cache.get_or_build(&1, || Ok::<_, std::io::Error>(1)));
        let core = cache.core();
        let mut ledger = core.ledger();
        let found = core.search(&mut ledger, &mut Refused::default(), true);
        let Search::Ask(index, _) = found else { panic!("nothing to ask about") };
        let asked: Vec<_> = ledger.asks.iter().map(|&(asked, _)| asked).collect();
        assert_eq!(asked, [index]);
        core.let_go(ledger, index);
        assert!(core.ledger().asks.is_empty());
        assert!(cache.get_or_build(&2, || Ok::<_, std::io::Error>(2)).is_ok());
    }

    #[test]
    fn who_said_busy_is_asked_again_after_a_use_and_nobody_for_ever() {
        let mut refused = Refused::default();
        refused.note(7, 1, false);
        assert!(refused.contains(7, 1) && !refused.contains(7, 2) && !refused.contains(8, 1));
        for stamp in 2..=Refused::PATIENCE as u64 + 1 {
            assert!(!refused.contains(7, stamp));
            refused.note(7, stamp, false);
        }
        // One answer more is the last.
        assert!(!refused.contains(7, 1_000));
        refused.note(7, 1_000, false);
        assert!(refused.contains(7, 1_001) && !refused.try_again());
    }

    #[test]
    fn an_idle_value_that_is_used_meanwhile_is_asked_again_within_reason() {
        let mut refused = Refused::default();
        for stamp in 1..=Refused::PATIENCE as u64 {
            refused.note(7, stamp, true);
            assert!(!refused.contains(7, stamp));
        }
        refused.note(7, 1_000, true);
        assert!(refused.contains(7, 1_000));
    }

    #[test]
    fn a_search_is_made_again_so_many_times() {
        let mut refused = Refused::default();
        assert!((0..Refused::PATIENCE).all(|_| refused.try_again()));
        assert!(!refused.try_again());
    }

    /// Where there is nobody to ask, the search itself decides: from then on nobody pins it.
    #[test]
    fn a_victim_that_a_search_gives_can_not_be_pinned_any_more() {
        let cache = Cache::<u8, u8>::builder().capacity(1).build().unwrap();
        drop(cache.get_or_build(&1, || Ok::<_, std::io::Error>(1)));
        let core = cache.core();
        let mut ledger = core.ledger();
        let found = core.search(&mut ledger, &mut Refused::default(), true);
        drop(ledger);
        let Search::Victim(index) = found else { panic!("no victim") };
        let state = &core.entry(index).grain.state;
        assert!(!state.is_resident() && !state.pin());
        core.evict(index, None);
        assert_eq!((cache.len(), cache.statistics().released), (0, 1));
    }
}
