//! A place among those who wait for another's build. Given up, it gives back the pin it was owed.

use std::future::poll_fn;

use super::flight::{Abdicated, Flight, Outcome, Woken};
use super::lead::{Lead, Room};
use super::waits::{self, Edge};
use super::{Core, Key};
use crate::Error;
use crate::cache::pinned::Pinned;
use crate::sync::Arc;

/// What a waiter gets that is told of no error: the value, or the lead of the build.
pub(crate) type Waited<'c, K, V> = Result<Result<Pinned<V>, Lead<'c, K, V>>, Error>;

/// One waiter of a flight.
pub(crate) struct Ticket<'c, K: Key, V: Send + Sync + 'static> {
    core: &'c Core<K, V>,
    index: u32,
    flight: Arc<Flight>,
    /// It woke up, and is no waiter any more.
    served: bool,
}

impl<'c, K: Key, V: Send + Sync + 'static> Ticket<'c, K, V> {
    /// The caller has joined the flight.
    pub(crate) fn new(core: &'c Core<K, V>, index: u32, flight: Arc<Flight>) -> Self {
        Self { core, index, flight, served: false }
    }

    /// Blocks until the flight has ended, or this waiter is to lead it.
    pub(crate) fn wait(self) -> Waited<'c, K, V> {
        let edges = self.announce()?;
        match self.flight.wait(self.core.config.takeover_after) {
            Some(woken) => self.serve(woken, edges),
            None => {
                self.core.supersede(self.index, &self.flight);
                Err(Error::Superseded)
            }
        }
    }

    /// The same for a task.
    pub(crate) async fn wait_async(self) -> Waited<'c, K, V> {
        let edges = self.announce()?;
        let woken = poll_fn(|context| self.flight.poll(context)).await;
        self.serve(woken, edges)
    }

    /// Puts the wait on the graph, if it does not close a circle.
    fn announce(&self) -> Result<Vec<Edge>, Error> {
        waits::wait_for(&[self.flight.node])
            .map_err(|_| Error::Cycle { cache: self.core.config.name.clone() })
    }

    fn serve(mut self, woken: Woken, edges: Vec<Edge>) -> Waited<'c, K, V> {
        drop(edges);
        self.served = true;
        match woken {
            Woken::Ended(Outcome::Ready) => Ok(Ok(self.core.adopt_pin(self.index))),
            Woken::Ended(Outcome::Failed(error)) => Err(error),
            Woken::Leads => {
                Ok(Err(Lead::new(self.core, self.index, self.flight.clone(), Room::Unknown)))
            }
        }
    }
}

impl<K: Key, V: Send + Sync + 'static> Drop for Ticket<'_, K, V> {
    fn drop(&mut self) {
        if self.served {
            return;
        }
        let ledger = self.core.ledger();
        let (outcome, rest) = self.flight.leave();
        if rest == Abdicated::Deserted {
            self.core.end_flight(ledger, self.index, &self.flight, Error::Removed);
            return;
        }
        drop(ledger);
        if let Some(Outcome::Ready) = outcome {
            drop(self.core.adopt_pin(self.index));
        }
    }
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// The handle of a pin that was taken on this entry for the caller.
    fn adopt_pin(&self, index: u32) -> Pinned<V> {
        Pinned::new(&self.entry(index).grain, None)
    }
}
