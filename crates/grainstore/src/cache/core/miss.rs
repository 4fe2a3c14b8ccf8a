//! A request for what is not there: it joins the build that is on its way, or leads one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::drains::Ending;
use super::entry::Identity;
use super::ledger::Ledger;
use super::flight::{Flight, Outcome, Woken};
use super::waits::{self, Inside};
use super::{Core, Key};
use crate::cache::devices::DeviceSet;
use crate::cache::pinned::Pinned;
use crate::error::BoxError;
use crate::sync::{Arc, MutexGuard};
use crate::Error;

/// What a request came to.
pub(crate) enum Begun<K: Key, V: Send + Sync + 'static> {
    Hit(Pinned<V>),
    Lead(Lead<K, V>),
    Join(Ticket<K, V>),
}

/// What a build that ran came to.
pub(crate) enum Built<V> {
    Value(V),
    Failed(Error),
}

/// The duty to end a flight: by a value, or by an error.
pub(crate) struct Lead<K: Key, V: Send + Sync + 'static> {
    core: Arc<Core<K, V>>,
    index: u32,
    flight: Arc<Flight>,
}

/// A place among the waiters of a flight.
pub(crate) struct Ticket<K: Key, V: Send + Sync + 'static> {
    core: Arc<Core<K, V>>,
    index: u32,
    flight: Arc<Flight>,
    /// The outcome was taken, with the pin that was kept for this waiter.
    served: bool,
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// A hit; or the lead of a new build, registered so that others join it; or a place among those
    /// who wait for a running one.
    pub(crate) fn begin(self: &Arc<Self>, key: &K, devices: &DeviceSet) -> Begun<K, V> {
        let hash = self.hash(key, devices);
        if let Some(pin) = self.find(hash, key, devices) {
            return Begun::Hit(pin);
        }
        // A key's own code runs under no lock where that can be helped.
        let identity = Identity { key: key.clone(), devices: devices.clone() };
        let mut ledger = self.ledger();
        if let Some(entry) = self.locate(hash, key, devices) {
            if let Some(pin) = self.pin_if(entry, key, devices) {
                drop(ledger);
                return Begun::Hit(pin);
            }
            let index = entry.grain.index;
            if let Some(flight) = ledger.record(index).flight.clone() {
                let joined = flight.join();
                if joined {
                    ledger.statistics.hits += 1;
                    ledger.statistics.waits += 1;
                }
                drop(ledger);
                let core = self.clone();
                return if joined {
                    Begun::Join(Ticket { core, index, flight, served: false })
                } else {
                    Begun::Lead(Lead { core, index, flight })
                };
            }
        }
        let (index, serial) = ledger.take_entry();
        assert!(self.arena.reach(index), "more than four billion entries");
        ledger.add_to_devices(index, devices.as_slice());
        // SAFETY: the entry comes from the free list.
        unsafe { self.entry(index).occupy(hash, serial, identity) };
        let flight = Arc::new(Flight::new());
        ledger.record(index).flight = Some(flight.clone());
        self.index.insert(hash, index);
        if ledger.has_place() {
            ledger.place(index);
        }
        drop(ledger);
        Begun::Lead(Lead { core: self.clone(), index, flight })
    }

    /// The value of this identity, built by `build` if it is not there and nobody else builds it.
    pub(crate) fn get_or_build<E: Into<BoxError>>(
        self: &Arc<Self>,
        key: &K,
        devices: &DeviceSet,
        build: impl FnOnce() -> Result<V, E>,
    ) -> Result<Pinned<V>, Error> {
        match self.begin(key, devices) {
            Begun::Hit(pin) => Ok(pin),
            Begun::Lead(lead) => lead.run(build),
            Begun::Join(ticket) => match ticket.wait()? {
                Ok(pin) => Ok(pin),
                Err(lead) => lead.run(build),
            },
        }
    }
}

impl<K: Key, V: Send + Sync + 'static> Lead<K, V> {
    /// Makes room, builds on this thread, and ends the flight.
    fn run<E: Into<BoxError>>(
        self,
        build: impl FnOnce() -> Result<V, E>,
    ) -> Result<Pinned<V>, Error> {
        // Making room calls back into the user's code: all of it counts as being inside the build.
        let inside = waits::enter(self.flight.node, self.core.id, Inside::Build);
        if let Err(error) = self.core.make_room(self.index, &self.flight) {
            drop(inside);
            return self.end_unbuilt(error);
        }
        let start = Instant::now();
        let built = match catch_unwind(AssertUnwindSafe(build)) {
            Ok(Ok(value)) => Built::Value(value),
            Ok(Err(error)) => Built::Failed(Error::Build(error.into().into())),
            Err(payload) => Built::Failed(Error::panicked(&*payload)),
        };
        drop(inside);
        self.end(built, start.elapsed())
    }

    /// Ends a flight that found no place.
    fn end_unbuilt(&self, error: Error) -> Result<Pinned<V>, Error> {
        let ledger = self.core.ledger();
        self.end_without_value(ledger, error)
    }

    /// Ends the flight with what the build came to.
    fn end(&self, built: Built<V>, took: Duration) -> Result<Pinned<V>, Error> {
        let mut ledger = self.core.ledger();
        ledger.statistics.build_time += took;
        let value = match built {
            Built::Value(value) => value,
            Built::Failed(error) => {
                ledger.statistics.build_failures += 1;
                return self.end_without_value(ledger, error);
            }
        };
        let entry = self.core.entry(self.index);
        ledger.statistics.built += 1;
        // SAFETY: the entry is in phase BUILDING, and this is its one leader.
        unsafe { entry.grain.write_value(value) };
        let record = ledger.record(self.index);
        record.flight = None;
        record.placed = false;
        let forsaken = std::mem::take(&mut record.forsaken);
        if forsaken {
            entry.grain.state.install_abandoned();
            ledger.statistics.abandoned += 1;
            drop(ledger);
            self.core.forget(self.index);
            return Err(self.flight.doomed().unwrap_or(Error::Removed));
        }
        ledger.building -= 1;
        if let Some(reason) = self.flight.doomed() {
            ledger.retired += 1;
            entry.grain.state.install_retired();
            drop(ledger);
            self.core.settle(self.index);
            return Err(reason);
        }
        ledger.resident += 1;
        let now = self.core.now();
        entry.use_at(now);
        entry.grain.state.install(1 + self.flight.waiters());
        let pin = Pinned::from_pin(&entry.grain);
        ledger.enqueue(self.index, now);
        self.flight.end(Outcome::Ready(self.index));
        Ok(pin)
    }

    /// Ends a flight that leaves nothing behind.
    fn end_without_value(
        &self,
        mut ledger: MutexGuard<'_, Ledger>,
        error: Error,
    ) -> Result<Pinned<V>, Error> {
        let core = &self.core;
        let entry = core.entry(self.index);
        let record = ledger.record(self.index);
        record.flight = None;
        let placed = std::mem::take(&mut record.placed);
        let forsaken = std::mem::take(&mut record.forsaken);
        ledger.building -= usize::from(placed);
        ledger.forsaken -= usize::from(forsaken);
        let doomed = self.flight.doomed();
        if doomed.is_none() {
            core.index.remove(entry.hash(), self.index);
            self.flight.end(Outcome::Failed(error.clone()));
        }
        core.end_entry(ledger, self.index, &Ending::WithoutRelease);
        Err(doomed.unwrap_or(error))
    }
}

impl<K: Key, V: Send + Sync + 'static> Ticket<K, V> {
    /// Blocks until the flight has ended, or this waiter is to lead it.
    fn wait(mut self) -> Result<Result<Pinned<V>, Lead<K, V>>, Error> {
        let Ok(edges) = waits::wait_for(&[self.flight.node]) else {
            return Err(Error::Cycle { cache: self.core.config.name.clone() });
        };
        let woken = self.flight.wait();
        drop(edges);
        self.served = true;
        match woken {
            Woken::Ended(Outcome::Ready(index)) => Ok(Ok(self.core.adopt_pin(index))),
            Woken::Ended(Outcome::Failed(error)) => Err(error),
            Woken::Leads => {
                let (core, flight) = (self.core.clone(), self.flight.clone());
                Ok(Err(Lead { core, index: self.index, flight }))
            }
        }
    }
}

impl<K: Key, V: Send + Sync + 'static> Drop for Ticket<K, V> {
    fn drop(&mut self) {
        if self.served {
            return;
        }
        let ledger = self.core.ledger();
        let outcome = self.flight.leave();
        drop(ledger);
        if let Some(Outcome::Ready(index)) = outcome {
            drop(self.core.adopt_pin(index));
        }
    }
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// The handle of a pin that was taken on this entry for the caller.
    fn adopt_pin(&self, index: u32) -> Pinned<V> {
        Pinned::from_pin(&self.entry(index).grain)
    }
}
