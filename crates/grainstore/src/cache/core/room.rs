//! Making room: the least recently used value that nobody pins and that `idle` calls idle goes.
//!
//! A victim is claimed, asked about under no lock, and then confirmed; a pin taken in between takes
//! the claim away. Where there is no `idle`, all three are one step.

use std::collections::HashMap;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::flight::Flight;
use super::ledger::Ledger;
use super::locked::Locked;
use super::state::Claim;
use super::waits;
use super::{Core, Key};
use crate::Error;
use crate::sync::{Arc, Weak};
use crate::timer::Until;

/// A cache whose values close over another's, as that other one sees it.
pub(crate) trait Borrower: Send + Sync {
    /// Releases the least recently used idle value. False if there is none.
    fn give_up_one(&self) -> bool;
}

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

    /// A value that was used since it said busy is asked again, within reason.
    fn contains(&self, index: u32, stamp: u64) -> bool {
        match self.answers.get(&index) {
            Some(&asked) => asked == stamp || self.overtaken > Self::PATIENCE,
            None => false,
        }
    }
}

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
            let last_use = self.last_use(ledger, index);
            if last_use > stamp {
                ledger.dequeue(index);
                ledger.enqueue(index, last_use);
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
    fn park_pinned(&self, ledger: &mut Ledger) {
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
    fn question(&self, index: u32, stamp: u64, refused: &mut Refused) -> Option<u32> {
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
        self.index.remove(self.entry(index).hash(), index);
        ledger.resident -= 1;
        ledger.retired += 1;
        ledger.releasing += 1;
        ledger.statistics.evictions += 1;
        ledger.lift_weight(index);
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

    /// Has the caches whose values close over ours give up an idle one, as long as that can free a
    /// place: only a value that somebody pins can become free by it.
    fn borrowers_give_up(&self) -> bool {
        {
            let ledger = self.ledger();
            let retired = ledger.retired - ledger.limbo.len().min(ledger.retired);
            let pinned =
                ledger.resident - ledger.ordered() + retired.saturating_sub(ledger.releasing);
            if pinned == 0 {
                return false;
            }
        }
        let borrowers = {
            let mut borrowers = self.borrowers.lock();
            borrowers.retain(|borrower| borrower.strong_count() > 0);
            borrowers.clone()
        };
        borrowers.iter().filter_map(Weak::upgrade).any(|borrower| borrower.give_up_one())
    }

    pub(crate) fn add_borrower(&self, borrower: Weak<dyn Borrower>) {
        self.borrowers.lock().push(borrower);
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
                let mut ledger = self.ledger();
                let known = ledger.room_wakers.iter().any(|known| known.will_wake(waker));
                if ledger.openings == seen && !known {
                    ledger.room_wakers.push(waker.clone());
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

impl<K: Key, V: Send + Sync + 'static> Borrower for Core<K, V> {
    fn give_up_one(&self) -> bool {
        if waits::is_inside_reap(self.id) || !self.may_release() {
            return false;
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
}

/// So that `Weak<Core<K, V>>` can be handed to the cache below.
pub(crate) fn as_borrower<K: Key, V: Send + Sync + 'static>(
    core: &Arc<Core<K, V>>,
) -> Weak<dyn Borrower> {
    let weak: Weak<Core<K, V>> = Arc::downgrade(core);
    weak
}
