//! Making room for a build: a free place, a victim's, or the answer that there is none.

use super::flight::Flight;
use super::locked::Locked;
use super::victim::{Refused, Search};
use super::waits;
use super::{Core, Key};
use crate::Error;

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// Gets the flight its place, at the cost of a victim if need be.
    pub(crate) fn make_room(&self, index: u32, flight: &Flight) -> Result<(), Error> {
        self.reap();
        let mut refused = Refused::default();
        loop {
            let mut ledger = self.ledger();
            if ledger.record(index).placed {
                return Ok(());
            }
            if let Some(reason) = flight.doomed() {
                return Err(reason);
            }
            if ledger.has_place() {
                ledger.place(index);
                return Ok(());
            }
            drop(ledger);
            let may = self.may_release();
            let mut ledger = self.ledger();
            if ledger.has_place() {
                continue;
            }
            let found = if may {
                self.search(&mut ledger, &mut refused, true)
            } else {
                self.park_pinned(&mut ledger);
                Search::Nothing
            };
            match found {
                Search::Victim(victim) => {
                    drop(ledger);
                    self.evict(victim, Some(index));
                    return Ok(());
                }
                Search::Ask(candidate, stamp) => {
                    drop(ledger);
                    if let Some(victim) = self.question(candidate, stamp, &mut refused) {
                        self.evict(victim, Some(index));
                        return Ok(());
                    }
                }
                Search::Undecided => {
                    if !self.await_decision(ledger) && !self.borrowers_give_up() {
                        return self.refuse(index, flight);
                    }
                }
                Search::Nothing => {
                    drop(ledger);
                    if !(may && self.borrowers_give_up()) {
                        return self.refuse(index, flight);
                    }
                }
            }
        }
    }

    fn refuse(&self, index: u32, flight: &Flight) -> Result<(), Error> {
        let mut ledger = self.ledger();
        if let Some(reason) = flight.doomed() {
            return Err(reason);
        }
        if ledger.has_place() {
            ledger.place(index);
            return Ok(());
        }
        Err(ledger.busy())
    }

    /// Waits until somebody's answer of `idle` is there. False if that somebody may be waiting for
    /// this very thread, so that the answer is as good as "busy".
    fn await_decision(&self, ledger: Locked<'_>) -> bool {
        let asking = ledger.asks.iter().map(|&(_, node)| node).collect::<Vec<_>>();
        let edges: Vec<_> =
            asking.iter().filter_map(|&node| waits::wait_for(&[node]).ok()).collect();
        if !asking.is_empty() && edges.is_empty() {
            return false;
        }
        let seen = ledger.changes;
        drop(ledger);
        let mut ledger = self.ledger.lock();
        ledger.sleepers += 1;
        while ledger.changes == seen {
            ledger = self.changed.wait(ledger);
        }
        ledger.sleepers -= 1;
        drop(ledger);
        drop(edges);
        true
    }
}
