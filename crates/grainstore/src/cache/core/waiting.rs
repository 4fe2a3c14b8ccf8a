//! Waiting for room, by a thread or a task. Nothing tells the cache that a value has become idle, so
//! such a wait asks again at growing distances, and at once when something else happens.

use std::task::Waker;
use std::time::Duration;

use super::victim::{Refused, Search};
use super::wakers::Spare;
use super::{Core, Key};
use crate::sync::Instant;
use crate::timer::Until;

/// How long to wait before `idle` is asked again, when nothing else happens: it doubles from the
/// first to the last.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LAST_PAUSE: Duration = Duration::from_millis(50);

/// Growing distances between questions.
pub(crate) struct Pause(Duration);

impl Pause {
    pub(crate) fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LAST_PAUSE);
        pause
    }
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// Sleeps until something may have made room since `seen`, or for that long.
    fn sleep_until_opening(&self, seen: u64, at_most: Duration) {
        let deadline = Instant::now() + at_most;
        let mut ledger = self.ledger.lock();
        ledger.sleepers += 1;
        while ledger.openings == seen {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            ledger = self.changed.wait_timeout(ledger, left);
        }
        ledger.sleepers -= 1;
    }

    /// Whether a request for a new key would find a place now.
    fn has_room(&self) -> bool {
        self.reap();
        let mut refused = Refused::default();
        loop {
            let mut ledger = self.ledger();
            if ledger.has_place() {
                return true;
            }
            drop(ledger);
            if !self.may_release() {
                return false;
            }
            ledger = self.ledger();
            match self.search(&mut ledger, &mut refused, false) {
                Search::Victim(_) => return true,
                Search::Ask(index, stamp) => {
                    drop(ledger);
                    let idle = self.ask(index);
                    self.let_go(self.ledger(), index);
                    if idle {
                        return true;
                    }
                    refused.note(index, stamp, false);
                }
                Search::Undecided | Search::Nothing => {
                    drop(ledger);
                    if !self.borrowers_give_up() {
                        return false;
                    }
                }
            }
        }
    }

    /// Blocks until a request for a new key would find a place, or the time is over.
    pub(crate) fn wait_for_room(&self, timeout: Duration) -> bool {
        let deadline = Instant::now().checked_add(timeout);
        let mut pause = Pause::new();
        loop {
            let seen = self.ledger().openings;
            if self.has_room() {
                return true;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            let pause = pause.next();
            self.sleep_until_opening(seen, left.map_or(pause, |left| left.min(pause)));
        }
    }

    /// The same for a task, without an end.
    pub(crate) async fn room(&self) {
        let mut pause = Pause::new();
        loop {
            let seen = self.ledger().openings;
            if self.has_room() {
                return;
            }
            let again = Instant::now().checked_add(pause.next());
            let changed = |waker: &Waker| {
                let mut spare = Spare::of(waker);
                let mut ledger = self.ledger();
                if ledger.openings == seen {
                    spare.join(&mut ledger.room_wakers);
                }
                ledger.openings != seen
            };
            Until::new(again, changed).await;
        }
    }

    /// Has everybody who waits for room or for a release ask again now.
    pub(crate) fn poke(&self) {
        let mut ledger = self.ledger();
        ledger.nudge_all_drains();
        self.note_opening(&mut ledger);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut pause = Pause::new();
        let pauses: Vec<_> = (0..12).map(|_| pause.next()).collect();
        assert_eq!((pauses[0], pauses[11]), (FIRST_PAUSE, LAST_PAUSE));
        assert!(pauses.windows(2).all(|two| two[1] == (two[0] * 2).min(LAST_PAUSE)));
    }

    #[test]
    fn who_has_waited_is_no_sleeper_any_more() {
        let cache = Cache::<u64, u64>::builder().capacity(1).build().unwrap();
        let pin = cache.get_or_build(&1, || Ok::<_, std::io::Error>(1)).unwrap();
        assert!(!cache.wait_for_room(Duration::from_millis(1)));
        assert_eq!(cache.core().ledger().sleepers, 0);
        drop(pin);
    }
}
