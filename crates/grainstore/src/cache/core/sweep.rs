//! Retiring many values at one instant: a clear, a device's eviction, a removal, the end of the
//! cache.
//!
//! All of a sweep happens under the ledger's lock. A look-up that takes no lock may still find what
//! the sweep has not reached yet, but nobody can learn that something is gone before it is over:
//! whoever does not find a value looks again under the lock.

use super::drains::{DrainState, Ending, tell};
use super::flight::{Abdicated, Flight};
use super::ledger::Ledger;
use super::locked::Locked;
use super::observe::Noted;
use super::{Core, Key};
use crate::cache::builder::Ownership;
use crate::cache::devices::DeviceSet;
use crate::cache::event::EventKind;
use crate::sync::Arc;
use crate::{DeviceId, Error};

/// What a sweep leaves for its thread to do, once the lock is gone.
struct Sweep<K> {
    drain: Arc<DrainState>,
    /// Entries that this thread holds now, to be settled.
    held: Vec<u32>,
    /// Doomed builds that nobody leads any more.
    deserted: Vec<(u32, Arc<Flight>)>,
    /// What was retired, for the observer.
    retired: Noted<K>,
}

impl<K> Sweep<K> {
    fn new() -> Self {
        let (held, deserted, retired) = (Vec::new(), Vec::new(), Vec::new());
        Self { drain: Arc::default(), held, deserted, retired }
    }
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// Retires every resident value; a borrowing cache also dooms every build.
    pub(crate) fn clear(&self) -> Arc<DrainState> {
        let doom = self.config.ownership == Ownership::Borrows;
        self.sweep(|core, ledger, sweep| {
            for index in 0..ledger.entries() {
                if core.entry(index).grain.state.is_resident() {
                    core.retire(ledger, index, sweep);
                } else if doom
                    && core.entry(index).grain.state.is_building()
                    && !ledger.record(index).forsaken
                {
                    core.doom(ledger, index, &Error::Cleared, sweep);
                }
            }
        })
    }

    /// Retires every value of the device, dooms every build for it, and covers also what was
    /// retired earlier.
    pub(crate) fn evict_device(&self, device: DeviceId) -> Arc<DrainState> {
        self.sweep(|core, ledger, sweep| {
            let doom = Error::DeviceDestroyed { device };
            for index in ledger.on_device(&device) {
                let state = &core.entry(index).grain.state;
                if state.is_resident() {
                    core.retire(ledger, index, sweep);
                } else if state.is_building() {
                    core.doom(ledger, index, &doom, sweep);
                } else {
                    cover(ledger, index, sweep);
                    if state.hold_retired() {
                        sweep.held.push(index);
                    }
                }
            }
        })
    }

    /// Retires one value, or dooms its build.
    pub(crate) fn remove(&self, key: &K, devices: &DeviceSet) -> Arc<DrainState> {
        let hash = self.hash(key, devices);
        self.sweep(|core, ledger, sweep| {
            let Some(entry) = core.locate(hash, key, devices) else { return };
            let index = entry.grain.index;
            if entry.grain.state.is_resident() {
                core.retire(ledger, index, sweep);
            } else {
                core.doom(ledger, index, &Error::Removed, sweep);
            }
        })
    }

    fn sweep(&self, mark: impl FnOnce(&Self, &mut Locked<'_>, &mut Sweep<K>)) -> Arc<DrainState> {
        let mut sweep = Sweep::new();
        let mut ledger = self.ledger();
        mark(self, &mut ledger, &mut sweep);
        drop(ledger);
        self.finish(sweep)
    }

    fn finish(&self, sweep: Sweep<K>) -> Arc<DrainState> {
        self.tell_noted(&sweep.retired, EventKind::Retired);
        for (index, flight) in sweep.deserted {
            self.end_deserted(index, &flight);
        }
        for index in sweep.held {
            self.settle(index);
        }
        sweep.drain
    }

    /// The last handle is gone: everything is retired, and released whether idle or not as soon as
    /// its last pin is gone.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut ledger = self.ledger();
        ledger.closed = true;
        let mut sweep = Sweep::new();
        for index in 0..ledger.entries() {
            let state = &self.entry(index).grain.state;
            if state.is_resident() {
                self.retire(&mut ledger, index, &mut sweep);
            } else if state.hold_retired() {
                sweep.held.push(index);
            }
        }
        if ledger.occupied() + ledger.forsaken > 0 {
            *self.myself.lock() = Some(self.clone());
        }
        drop(ledger);
        for error in self.finish(sweep).drop_handle() {
            self.sink(&error);
        }
    }

    /// RESIDENT to RETIRED: out of the index and the order of use.
    fn retire(&self, ledger: &mut Ledger, index: u32, sweep: &mut Sweep<K>) {
        let entry = self.entry(index);
        self.index.remove(ledger, entry.hash(), index);
        ledger.dequeue(index);
        ledger.resident -= 1;
        ledger.retired += 1;
        cover(ledger, index, sweep);
        self.note(&mut sweep.retired, index);
        if entry.grain.state.retire() {
            sweep.held.push(index);
        }
    }

    /// The build's value will not be kept; who comes from now on starts another one.
    fn doom(&self, ledger: &mut Locked<'_>, index: u32, reason: &Error, sweep: &mut Sweep<K>) {
        cover(ledger, index, sweep);
        let Some(flight) = ledger.share_flight(index) else { return };
        let Some((rest, wakers)) = flight.doom(reason) else { return };
        ledger.wake_later(wakers);
        self.index.remove(ledger, self.entry(index).hash(), index);
        ledger.statistics.doomed += 1;
        if rest == Abdicated::Deserted {
            sweep.deserted.push((index, flight));
        }
    }

    /// Gives up on everything the drain waits for. How many values and builds that were.
    pub(crate) fn abandon(&self, drain: &DrainState) -> usize {
        let mut ledger = self.ledger();
        let mut forgotten = Vec::new();
        let mut abandoned = Noted::new();
        let mut count = 0;
        for index in drain.pending() {
            let state = &self.entry(index).grain.state;
            if state.is_building() {
                let record = ledger.record(index);
                if record.forsaken {
                    continue;
                }
                record.forsaken = true;
                let placed = std::mem::take(&mut record.placed);
                ledger.building -= usize::from(placed);
            } else if let Some(held) = state.abandon() {
                ledger.retired -= 1;
                ledger.statistics.abandoned += 1;
                ledger.limbo.remove(&index);
                if held {
                    forgotten.push(index);
                }
            } else {
                // Its release is under way on another thread, and cannot be taken back.
                continue;
            }
            count += 1;
            ledger.forsaken += 1;
            self.note(&mut abandoned, index);
            ledger.lift_weight(index);
            // SAFETY: what a drain waits for is not vacant, under the lock.
            let devices = unsafe { self.entry(index).identity() }.devices.clone();
            ledger.remove_from_devices(index, devices.as_slice());
            let coverage = ledger.drains.remove(&index).unwrap_or_default();
            let (_, wakers) = tell(&coverage, index, &Ending::WithoutRelease);
            ledger.wake_later(wakers);
        }
        self.note_opening(&mut ledger);
        drop(ledger);
        self.tell_noted(&abandoned, EventKind::Abandoned);
        for index in forgotten {
            self.forget(index);
        }
        count
    }

    /// One pass over what the drain waits for: releases what can be released now. Whether
    /// something is left that nobody pins, and that may be released later without a sign.
    pub(crate) fn settle_pending(&self, drain: &DrainState) -> bool {
        // What waits here may be pinned by plans that were retired while they were busy.
        let above = drain.pending_count() > 0 && self.reap_borrowers();
        drain.pending().into_iter().for_each(|index| {
            self.retry(index);
        });
        let ledger = self.ledger();
        above || drain.pending().iter().any(|index| ledger.limbo.contains(index))
    }

    /// The keys that the drain still waits for.
    pub(crate) fn pending_keys(&self, drain: &DrainState) -> Vec<K> {
        let _ledger = self.ledger();
        let pending = drain.pending().into_iter();
        // SAFETY: what a drain waits for is not vacant, under the lock.
        pending.map(|index| unsafe { self.entry(index).identity() }.key.clone()).collect()
    }
}

fn cover<K>(ledger: &mut Ledger, index: u32, sweep: &Sweep<K>) {
    sweep.drain.cover(index);
    let coverage = ledger.drains.entry(index).or_default();
    // A value that stays pinned may see many sweeps whose drains nobody kept.
    coverage.retain(|drain| !drain.is_dropped());
    coverage.push(sweep.drain.clone());
}
