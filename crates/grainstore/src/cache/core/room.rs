//! Making room for a build: a free place, a victim's, or the answer that there is none.

use super::flight::Flight;
use super::lead::Room;
use super::ledger::Ledger;
use super::locked::Locked;
use super::victim::{Refused, Search};
use super::waits;
use super::{Core, Key};
use crate::Error;

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// What a new flight finds without a question: a free place, or a victim where nothing has to be
    /// asked. Under the lock.
    pub(crate) fn room_at_once(&self, ledger: &mut Ledger, index: u32) -> Room {
        if !ledger.limbo.is_empty() {
            // A miss first tries what could not be released before.
            return Room::Unknown;
        }
        if ledger.has_place() {
            ledger.place(index);
            return Room::Taken;
        }
        if self.config.idle.is_some() || self.config.may_release.is_some() {
            return Room::Unknown;
        }
        match self.search(ledger, &mut Refused::default(), true) {
            Search::Victim(victim) => Room::Of(victim),
            _ => Room::Unknown,
        }
    }

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
            // What is true now, with the lock that the search had: later a pin may be gone.
            let busy = ledger.busy();
            let seen = ledger.openings;
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
                        if self.look_again(seen, &mut refused) {
                            continue;
                        }
                        return self.refuse(index, flight, busy);
                    }
                }
                Search::Nothing => {
                    drop(ledger);
                    if !(may && self.borrowers_give_up()) {
                        if may && self.look_again(seen, &mut refused) {
                            continue;
                        }
                        return self.refuse(index, flight, busy);
                    }
                }
            }
        }
    }

    /// Whether something was let go since the search, so that it is worth another, within reason.
    fn look_again(&self, seen: u64, refused: &mut Refused) -> bool {
        self.ledger().openings != seen && refused.try_again()
    }

    fn refuse(&self, index: u32, flight: &Flight, busy: Error) -> Result<(), Error> {
        let mut ledger = self.ledger();
        if let Some(reason) = flight.doomed() {
            return Err(reason);
        }
        if ledger.has_place() {
            ledger.place(index);
            return Ok(());
        }
        ledger.statistics.refused += 1;
        Err(busy)
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

#[cfg(test)]
mod tests {
    use std::io::Error;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    use crate::sync::Mutex;
    use crate::{Cache, Pinned};

    /// A cache whose `idle` says that it was asked, and answers what it is given.
    fn asking(capacity: usize) -> (Cache<u64, u64>, Receiver<()>, Sender<bool>) {
        let (says, asked) = channel();
        let (answers, answer) = channel();
        let answer: Mutex<Receiver<bool>> = Mutex::new(answer);
        let idle = move |_: &u64| {
            says.send(()).unwrap();
            answer.lock().recv().unwrap()
        };
        let cache = Cache::builder().capacity(capacity).idle(idle).build().unwrap();
        (cache, asked, answers)
    }

    fn build(cache: &Cache<u64, u64>, key: u64) -> Result<Pinned<u64>, crate::Error> {
        cache.get_or_build(&key, || Ok::<_, Error>(key))
    }

    fn await_sleeper(cache: &Cache<u64, u64>) {
        while cache.core().ledger().sleepers == 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn who_has_waited_for_an_answer_is_no_sleeper_any_more() {
        let (cache, asked, answers) = asking(1);
        drop(build(&cache, 1));
        thread::scope(|scope| {
            let asks = scope.spawn(|| build(&cache, 2));
            asked.recv().unwrap();
            let waits = scope.spawn(|| build(&cache, 3));
            await_sleeper(&cache);
            // Busy, whoever asks.
            (0..9).for_each(|_| answers.send(false).unwrap());
            assert!(asks.join().unwrap().is_err() && waits.join().unwrap().is_err());
        });
        assert_eq!(cache.core().ledger().sleepers, 0);
    }

    /// E8: as long as somebody else's answer may make room, no plan has to go.
    #[test]
    fn who_waits_for_an_answer_has_no_plan_give_way() {
        let (kernels, asked, answers) = asking(2);
        let plans = Cache::<u64, Pinned<u64>>::builder().borrows_from(&kernels).build().unwrap();
        drop(build(&kernels, 1));
        drop(plans.get_or_build(&2, || build(&kernels, 2)));
        thread::scope(|scope| {
            let asks = scope.spawn(|| kernels.wait_for_room(Duration::ZERO));
            asked.recv().unwrap();
            let waits = scope.spawn(|| build(&kernels, 3).map(drop));
            await_sleeper(&kernels);
            (0..2).for_each(|_| answers.send(true).unwrap());
            assert!(asks.join().unwrap() && waits.join().unwrap().is_ok());
        });
        assert_eq!((plans.len(), kernels.get(&1).is_none()), (1, true));
    }
}
