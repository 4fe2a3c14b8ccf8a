//! A request for what is not there: it joins the build that is on its way, or leads one.

use super::entry::Identity;
use super::lead::{Lead, Room};
use super::readers::slot::{ReaderSlot, take_back};
use super::ticket::Ticket;
use super::{Core, Key};
use crate::Error;
use crate::cache::devices::DeviceSet;
use crate::cache::pinned::Pinned;
use crate::error::BoxError;

/// What a request came to.
enum Begun<'c, K: Key, V: Send + Sync + 'static> {
    Hit(Pinned<V>),
    Lead(Lead<'c, K, V>),
    Join(Ticket<'c, K, V>),
}

impl<K: Key, V: Send + Sync + 'static> Core<K, V> {
    /// A hit after all; or the lead of a new build, registered so that others join it; or a place
    /// among those who wait for a running one.
    fn begin_miss(&self, hash: u64, key: &K, devices: &DeviceSet) -> Begun<'_, K, V> {
        // A key's own code runs under no lock where that can be helped.
        let identity = Identity { key: key.clone(), devices: devices.clone() };
        let mut ledger = self.ledger();
        if let Some(entry) = self.locate(hash, key, devices) {
            if let Some(pin) = self.pin_located(entry) {
                self.note_use_located(ledger, entry);
                return Begun::Hit(pin);
            }
            let index = entry.grain.index;
            if let Some(flight) = ledger.share_flight(index) {
                if flight.join() {
                    ledger.statistics.hits += 1;
                    ledger.statistics.waits += 1;
                    drop(ledger);
                    return Begun::Join(Ticket::new(self, index, flight));
                }
                drop(ledger);
                return Begun::Lead(Lead::new(self, index, flight, Room::Unknown));
            }
        }
        let (index, serial) = ledger.take_entry();
        assert!(self.arena.reach(index), "four billion entries are more than memory holds");
        ledger.add_to_devices(index, devices.as_slice());
        // SAFETY: the entry comes from the free list.
        unsafe { self.entry(index).occupy(hash, serial, identity) };
        let flight = ledger.begin_flight(index);
        self.index.insert(&mut ledger, hash, index);
        let room = self.room_at_once(&mut ledger, index);
        drop(ledger);
        Begun::Lead(Lead::new(self, index, flight, room))
    }

    /// The value of this identity, built by `build` if it is not there and nobody else builds it.
    /// The hash is [`Core::hash`]'s.
    #[inline]
    pub(crate) fn get_or_build<E: Into<BoxError>>(
        &self,
        hash: u64,
        key: &K,
        devices: &DeviceSet,
        build: impl FnOnce() -> Result<V, E>,
    ) -> Result<Pinned<V>, Error> {
        match self.find_at_once(hash, key, devices) {
            Ok(pin) => Ok(pin),
            Err(left) => self.build_anyhow(left, hash, key, devices, build).map_err(|error| *error),
        }
    }

    /// The long way. The error is boxed, so that what this returns fits into two registers; a hit's
    /// result would go through memory as well if a miss's did.
    #[cold]
    #[inline(never)]
    pub(crate) fn build_anyhow<E: Into<BoxError>>(
        &self,
        left: Option<ReaderSlot>,
        hash: u64,
        key: &K,
        devices: &DeviceSet,
        build: impl FnOnce() -> Result<V, E>,
    ) -> Result<Pinned<V>, Box<Error>> {
        take_back(left);
        match self.find_anywhere(hash, key, devices) {
            Some(pin) => Ok(pin),
            None => Ok(self.join_or_lead(hash, key, devices, build)?),
        }
    }

    fn join_or_lead<E: Into<BoxError>>(
        &self,
        hash: u64,
        key: &K,
        devices: &DeviceSet,
        build: impl FnOnce() -> Result<V, E>,
    ) -> Result<Pinned<V>, Error> {
        loop {
            match self.begin_miss(hash, key, devices) {
                Begun::Hit(pin) => return Ok(pin),
                Begun::Lead(lead) => return lead.run(build),
                Begun::Join(ticket) => match ticket.wait() {
                    // The build was taken over: there is a newer one to join.
                    Err(Error::Superseded) => {}
                    Err(error) => return Err(error),
                    Ok(Ok(pin)) => return Ok(pin),
                    Ok(Err(lead)) => return lead.run(build),
                },
            }
        }
    }

    pub(crate) async fn miss_async<E: Into<BoxError>>(
        &self,
        hash: u64,
        key: &K,
        devices: &DeviceSet,
        build: impl Future<Output = Result<V, E>>,
    ) -> Result<Pinned<V>, Error> {
        loop {
            match self.begin_miss(hash, key, devices) {
                Begun::Hit(pin) => return Ok(pin),
                Begun::Lead(lead) => return lead.run_async(build).await,
                Begun::Join(ticket) => match ticket.wait_async().await {
                    Err(Error::Superseded) => {}
                    Err(error) => return Err(error),
                    Ok(Ok(pin)) => return Ok(pin),
                    Ok(Err(lead)) => return lead.run_async(build).await,
                },
            }
        }
    }
}
