//! The duty to end a flight: by a value, by an error, or by leaving it to whoever waits.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::drains::Ending;
use super::flight::{Abdicated, Flight, Outcome};
use super::waits::{self, Edge, Inside};
use super::{Core, Key, Locked};
use crate::Error;
use crate::cache::event::EventKind;
use crate::cache::pinned::Pinned;
use crate::contain::contain;
use crate::error::BoxError;
use crate::sync::{Arc, Instant};

/// The leader of one flight.
pub(crate) struct Lead<'c, K: Key, V: Send + Sync + 'static> {
    core: &'c Core<K, V>,
    index: u32,
    flight: Arc<Flight>,
    room: Room,
    ended: bool,
}

/// What a new flight found when it was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// A place, and nothing else to do.
    Taken,
    /// The place of this entry, which the leader owns, and whose value it has to release.
    Of(u32),
    /// Nothing yet.
    Unknown,
}

/// What a build that ran came to.
type Built<V> = Result<V, Error>;

impl<'c, K: Key, V: Send + Sync + 'static> Lead<'c, K, V> {
    pub(crate) fn new(core: &'c Core<K, V>, index: u32, flight: Arc<Flight>, room: Room) -> Self {
        Self { core, index, flight, room, ended: false }
    }

    fn make_room(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.room, Room::Unknown) {
            Room::Taken => Ok(()),
            Room::Of(victim) => {
                self.core.evict(victim, Some(self.index));
                Ok(())
            }
            Room::Unknown => self.core.make_room(self.index, &self.flight),
        }
    }

    /// Makes room, builds on this thread, and ends the flight.
    pub(crate) fn run<E: Into<BoxError>>(
        mut self,
        build: impl FnOnce() -> Result<V, E>,
    ) -> Result<Pinned<V>, Error> {
        // Making room calls back into the user's code: all of it counts as being inside the build.
        let inside = waits::enter(self.flight.node, self.core.id, Inside::Build);
        if let Err(error) = self.make_room() {
            drop(inside);
            return Err(self.end_without_value(error, None));
        }
        self.core.observe(self.index, EventKind::BuildStarted);
        let start = Instant::now();
        let span = self.core.span();
        let built = span.in_scope(|| contain(|| build().map_err(build_error)));
        let built = built.unwrap_or_else(|message| Err(Error::Panicked { message }));
        drop(inside);
        self.end(built, start.elapsed())
    }

    /// The same with a build that is a future, polled wherever this is polled.
    pub(crate) async fn run_async<E: Into<BoxError>>(
        mut self,
        build: impl Future<Output = Result<V, E>>,
    ) -> Result<Pinned<V>, Error> {
        // Until it has ended, whoever waits for what this began in waits for this.
        let parent: Option<Edge> = waits::nest(self.flight.node);
        {
            let _inside = waits::enter(self.flight.node, self.core.id, Inside::Build);
            if let Err(error) = self.make_room() {
                return Err(self.end_without_value(error, None));
            }
        }
        self.core.observe(self.index, EventKind::BuildStarted);
        let start = Instant::now();
        let span = self.core.span();
        // Boxed, so that its drop can be watched for a panic.
        let mut build = Box::pin(build);
        let built = poll_fn(|context| {
            let _inside = waits::enter(self.flight.node, self.core.id, Inside::Build);
            let poll = || build.as_mut().poll(context).map_err(build_error);
            let polled = span.in_scope(|| contain(poll));
            polled.unwrap_or_else(|message| Poll::Ready(Err(Error::Panicked { message })))
        })
        .await;
        let built = match contain(|| drop(build)) {
            Ok(()) => built,
            Err(message) => built.and(Err(Error::Panicked { message })),
        };
        let ended = self.end(built, start.elapsed());
        drop(parent);
        ended
    }

    /// Ends the flight with what the build came to.
    fn end(self, built: Built<V>, took: Duration) -> Result<Pinned<V>, Error> {
        let value = match built {
            Ok(value) => value,
            Err(error) => return Err(self.end_without_value(error, Some(took))),
        };
        let core = self.core;
        let fits = !core.config.hears_of_values() || {
            // What runs here of the user's may ask for keys, and must not ask for this one.
            let _inside = waits::enter(self.flight.node, core.id, Inside::Build);
            core.observe(self.index, EventKind::BuildFinished { took, error: None });
            self.flight.doomed().is_none() && core.fit(self.flight.node, self.index, &value)
        };
        let mut ledger = core.ledger();
        ledger.statistics.build_time += took;
        ledger.statistics.built += 1;
        let entry = core.entry(self.index);
        // SAFETY: the entry is in phase BUILDING, and this is its one leader.
        unsafe { entry.grain.write_value(value) };
        let flown = ledger.land_flight(self.index);
        if flown.forsaken {
            // Its place was given up when it was abandoned.
            entry.grain.state.install_abandoned();
            ledger.statistics.abandoned += 1;
            drop(ledger);
            let reason = self.flight.doomed().unwrap_or(Error::Removed);
            core.forget(self.index);
            self.done();
            return Err(reason);
        }
        let state = &entry.grain.state;
        let install = |waiters| {
            let pins = 1 + waiters;
            if fits { state.install(pins) } else { state.install_unretained(pins) }
        };
        let told = if flown.shared {
            self.flight.succeed(install)
        } else {
            install(0);
            Ok(Vec::new())
        };
        let wakers = match told {
            Ok(wakers) => wakers,
            Err(reason) => {
                ledger.retired += 1;
                state.install_retired();
                drop(ledger);
                return self.end_doomed(reason);
            }
        };
        ledger.wake_later(wakers);
        if fits {
            ledger.resident += 1;
            let now = core.now(&mut ledger);
            ledger.enqueue(self.index, now);
        } else {
            ledger.retired += 1;
            ledger.statistics.unretained += 1;
            core.index.remove(&mut ledger, entry.hash(), self.index);
        }
        let pin = Pinned::new(&entry.grain, None);
        drop(ledger);
        self.done();
        Ok(pin)
    }

    /// The doomed value, whose entry this thread holds, is let go, and its caller told why. One
    /// whose build was taken over gets the value that is there instead.
    fn end_doomed(self, reason: Error) -> Result<Pinned<V>, Error> {
        let core = self.core;
        let index = self.index;
        self.done();
        let wanted = matches!(reason, Error::Superseded).then(|| {
            // SAFETY: this thread holds the entry, so that it is not vacant.
            let identity = unsafe { core.entry(index).identity() };
            let copy = || (identity.key.clone(), identity.devices.clone());
            contain(copy).ok()
        });
        core.settle(index);
        let there = wanted.flatten().and_then(|(key, devices)| {
            core.get_anyhow(None, core.hash(&key, &devices), &key, &devices)
        });
        there.ok_or(reason)
    }

    /// Ends a flight that leaves nothing behind. What its caller is told.
    fn end_without_value(self, error: Error, took: Option<Duration>) -> Error {
        if let Some(took) = took {
            let _inside = waits::enter(self.flight.node, self.core.id, Inside::Build);
            let finished = EventKind::BuildFinished { took, error: Some(&error) };
            self.core.observe(self.index, finished);
        }
        let mut ledger = self.core.ledger();
        if let Some(took) = took {
            ledger.statistics.build_failures += 1;
            ledger.statistics.build_time += took;
        }
        let told = self.core.end_flight(ledger, self.index, &self.flight, error);
        self.done();
        told
    }

    fn done(mut self) {
        self.ended = true;
    }
}

impl<K: Key, V: Send + Sync + 'static> Drop for Lead<'_, K, V> {
    /// A future that led was dropped: a waiter takes over, or the flight ends.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Room::Of(victim) = self.room {
            self.core.evict(victim, None);
        }
        let mut ledger = self.core.ledger();
        let (rest, wakers) = self.flight.abdicate();
        ledger.wake_later(wakers);
        if rest == Abdicated::Deserted {
            self.core.end_flight(ledger, self.index, &self.flight, Error::Removed);
        }
    }
}

fn build_error<E: Into<BoxError>>(error: E) -> Error {
    Error::Build(error.into().into())
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// Ends a doomed flight that has no leader.
    pub(crate) fn end_deserted(&self, index: u32, flight: &Flight) {
        self.end_flight(self.ledger(), index, flight, Error::Removed);
    }

    /// The flight came to nothing: its entry and its place are given back. What its caller is told.
    pub(crate) fn end_flight(
        &self,
        mut ledger: Locked<'_>,
        index: u32,
        flight: &Flight,
        error: Error,
    ) -> Error {
        let flown = ledger.end_flight(index);
        ledger.forsaken -= usize::from(flown.forsaken);
        let doomed = flight.doomed();
        if doomed.is_none() {
            self.index.remove(&mut ledger, self.entry(index).hash(), index);
            ledger.wake_later(flight.end(Outcome::Failed(error.clone())));
        }
        self.end_entry(ledger, index, &Ending::WithoutRelease);
        doomed.unwrap_or(error)
    }

    /// A waiter's patience is over: the running build is doomed, and who comes now builds afresh.
    pub(crate) fn supersede(&self, index: u32, flight: &Arc<Flight>) {
        let mut ledger = self.ledger();
        // The entry may have ended meanwhile, and be another's.
        if !ledger.is_flight_of(index, flight) {
            return;
        }
        if let Some((rest, wakers)) = flight.doom(&Error::Superseded) {
            self.index.remove(&mut ledger, self.entry(index).hash(), index);
            ledger.wake_later(wakers);
            drop(ledger);
            if rest == Abdicated::Deserted {
                self.end_deserted(index, flight);
            }
        }
    }
}
