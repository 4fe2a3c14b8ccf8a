//! Letting go of values: each is released once, under no lock, by the thread that holds its entry.

use super::drains::{Coverage, Ending, tell};
use super::ledger::Ledger;
use super::locked::Locked;
use super::pins::Owner;
use super::state::LetGo;
use super::waits::{self, Inside};
use super::{Core, Key, address};
use crate::ReleaseError;
use crate::cache::event::EventKind;
use crate::contain::contain;
use crate::sync::Arc;

impl<K: Key, V: Send + Sync + 'static> Owner<V> for Core<K, V> {
    fn id(&self) -> u64 {
        self.id
    }

    fn decide(self: Arc<Self>, index: u32) {
        self.decide_held(index);
    }
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// The caller holds the entry, and nobody pins it: puts it back into the order of use if it is
    /// resident, and else lets go of its value.
    pub(crate) fn decide_held(&self, index: u32) {
        let state = &self.entry(index).grain.state;
        let mut ledger = self.ledger();
        if state.is_resident() {
            // Retiring takes the lock, so that the entry stays resident here. It may have been
            // pinned, parked and unpinned again since it was held; then it is still held.
            let last_use = ledger.last_use(index);
            ledger.enqueue(index, last_use);
            while state.let_go() == LetGo::StillHeld {}
            self.note_opening(&mut ledger);
            return;
        }
        drop(ledger);
        if state.is_abandoned() {
            self.forget(index);
        } else {
            self.settle(index);
        }
    }

    /// The caller holds a retired or abandoned entry that nobody pins: releases its value if that
    /// may be done here and now. True if it has been.
    pub(crate) fn settle(&self, index: u32) -> bool {
        let state = &self.entry(index).grain.state;
        let Some(mut sure) = self.unpinned(index) else { return false };
        loop {
            let release = sure || (self.may_release() && self.ask(index));
            let mut ledger = self.ledger();
            self.end_ask(&mut ledger, index);
            // Looked at under the lock that closing takes: a closed cache has no later.
            sure = ledger.closed;
            if sure && !release {
                continue;
            }
            let kept = if release { state.start_release() } else { state.let_go_retired() };
            if !kept {
                drop(ledger);
                self.forget_unpinned(index);
                return false;
            }
            if release {
                ledger.releasing += 1;
                ledger.limbo.remove(&index);
                drop(ledger);
                self.release_owned(index, None);
                return true;
            }
            if ledger.limbo.insert(index) {
                // Who waits for it has to ask now and then, from now on.
                ledger.nudge_drains(index);
            }
            self.note_change(&mut ledger);
            return false;
        }
    }

    /// The caller holds a retired or abandoned entry: whether really nobody pins it, and then
    /// whether the cache is closed. Otherwise the hold is gone, and the last of the pins decides.
    fn unpinned(&self, index: u32) -> Option<bool> {
        let state = &self.entry(index).grain.state;
        let mut ledger = self.ledger();
        let announced = self.announced_pins(&mut ledger, index);
        // Slots first, the count second: a pin goes from a slot to the count, by a clone, and never
        // back. And once there is none of either, there will be none.
        let left = announced || state.is_counted();
        if left && state.leave_to_pins(!announced) { None } else { Some(ledger.closed) }
    }

    pub(crate) fn may_release(&self) -> bool {
        let Some(may) = &self.config.may_release else { return true };
        contain(may).unwrap_or(false)
    }

    /// Asks `idle` about an entry that the caller holds. A panic means busy. The caller next takes
    /// the lock, acts on the answer, and says [`end_ask`](Self::end_ask) before it lets the lock go.
    pub(crate) fn ask(&self, index: u32) -> bool {
        let Some(idle) = &self.config.idle else { return true };
        let node = self.ledger().ask(index);
        let grain = &self.entry(index).grain;
        let _inside = waits::enter(node, self.id, Inside::Idle(address(grain)));
        // SAFETY: the caller holds the entry, which has a value.
        let value = unsafe { grain.value() };
        contain(|| idle(value)).unwrap_or(false)
    }

    /// What was asked about the entry is decided, in this hold of the lock.
    pub(crate) fn end_ask(&self, ledger: &mut Locked<'_>, index: u32) {
        ledger.asks.retain(|&(asked, _)| asked != index);
        // Also where there was nothing to ask: another search may have met the hold, and sleep.
        self.note_change(ledger);
    }

    /// Takes the value out and hands it to the release callback. The caller owns the entry.
    fn release_value(&self, index: u32) -> Result<(), ReleaseError> {
        // Without a callback and without a drop nothing of the user's runs here.
        let runs_code = self.config.release.is_some() || std::mem::needs_drop::<V>();
        let _inside = runs_code.then(|| waits::enter_release(self.id));
        // SAFETY: the entry is in phase RELEASING, which this thread brought about.
        let value = unsafe { self.entry(index).grain.take_value() };
        let release = || match &self.config.release {
            Some(release) => release(value).map_err(|error| ReleaseError::Failed(error.into())),
            None => {
                drop(value);
                Ok(())
            }
        };
        contain(release).unwrap_or_else(|message| Err(ReleaseError::Panicked { message }))
    }

    /// The victim of a bound is released, and its place passes to that build.
    pub(crate) fn evict(&self, index: u32, successor: Option<u32>) {
        self.observe(index, EventKind::Evicted);
        self.release_owned(index, successor);
    }

    /// Releases the value of an entry that the caller owns, in phase RELEASING. The place is free
    /// when the release has returned, or passes to that build.
    fn release_owned(&self, index: u32, successor: Option<u32>) {
        let outcome = self.release_value(index);
        self.observe(
            index,
            match &outcome {
                Ok(()) => EventKind::Released,
                Err(error) => EventKind::ReleaseFailed { error },
            },
        );
        let mut ledger = self.ledger();
        ledger.retired -= 1;
        ledger.releasing -= 1;
        ledger.statistics.released += 1;
        ledger.statistics.release_failures += u64::from(outcome.is_err());
        // Unless the build was abandoned meanwhile.
        if let Some(build) = successor.filter(|&build| !ledger.record(build).forsaken) {
            ledger.place(build);
        }
        self.end_entry(ledger, index, &Ending::Released(outcome));
    }

    /// The entry's value is gone: tells its drains, and gives the entry back.
    pub(crate) fn end_entry(&self, mut ledger: Locked<'_>, index: u32, ending: &Ending) {
        // SAFETY: the caller owns the entry.
        let devices = unsafe { self.entry(index).identity() }.devices.as_slice();
        ledger.remove_from_devices(index, devices);
        // Most entries are in none of these.
        if !ledger.limbo.is_empty() {
            ledger.limbo.remove(&index);
        }
        let covered = !ledger.drains.is_empty();
        let coverage: Coverage =
            covered.then(|| ledger.drains.remove(&index)).flatten().unwrap_or_default();
        let identity = self.free_entry(&mut ledger, index);
        let (unshown, wakers) = tell(&coverage, index, ending);
        ledger.wake_later(wakers);
        self.note_opening(&mut ledger);
        let myself = self.end_of_life(&ledger);
        drop(ledger);
        let _ = contain(|| drop(identity));
        if let Some(error) = unshown {
            self.sink(&error);
        }
        drop(myself);
    }

    /// A closed cache whose last value is gone: the reference that kept its core alive.
    fn end_of_life(&self, ledger: &Ledger) -> Option<Arc<Self>> {
        let alive = ledger.occupied() + ledger.forsaken > 0;
        if ledger.closed && !alive { self.myself.lock().take() } else { None }
    }

    /// A release error that no call can return.
    pub(crate) fn sink(&self, error: &ReleaseError) {
        if let Some(sink) = &self.config.on_release_error {
            let _ = contain(|| sink(error));
        }
    }

    /// The caller holds an abandoned entry: the value is forgotten if nobody pins it.
    pub(crate) fn forget(&self, index: u32) {
        if self.unpinned(index).is_some() {
            self.forget_unpinned(index);
        }
    }

    fn forget_unpinned(&self, index: u32) {
        // SAFETY: the entry is abandoned, unpinned, and held by this thread alone.
        std::mem::forget(unsafe { self.entry(index).grain.take_value() });
        let mut ledger = self.ledger();
        ledger.forsaken -= 1;
        self.end_entry(ledger, index, &Ending::WithoutRelease);
    }

    /// Tries once more to release every retired value that nobody pins. How many it released.
    pub(crate) fn reap(&self) -> usize {
        // What `idle` or a release does must not reap in turn.
        if waits::is_inside_reap(self.id) || !self.may_release() {
            return 0;
        }
        let waiting: Vec<u32> = {
            let ledger = self.ledger();
            ledger.limbo.iter().copied().collect()
        };
        waiting.into_iter().filter(|&index| self.retry(index)).count()
    }

    /// Tries to release an entry that was retired at some time. True if it has been released.
    pub(crate) fn retry(&self, index: u32) -> bool {
        self.entry(index).grain.state.hold_retired() && self.settle(index)
    }

    /// Ends a hold, and the question it was taken for, on an entry that was resident when it began.
    pub(crate) fn let_go(&self, mut ledger: Locked<'_>, index: u32) {
        self.end_ask(&mut ledger, index);
        let found = self.entry(index).grain.state.let_go();
        drop(ledger);
        if found == LetGo::StillHeld {
            self.decide_held(index);
        }
    }
}
