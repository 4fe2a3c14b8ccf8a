//! The devices of one backend and the handle that is good for each just now.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use grainstore::DeviceId;

use crate::device::Phase;
use crate::loaded::Life;
use crate::{Device, DeviceInfo, RuntimeError};

/// Which devices are there, and in which state.
///
/// Invariants: at most one handle of an identity is live; while a teardown of it is unfinished, no
/// new handle is made; one call at a time carries a teardown on. The lock is held for the change
/// itself only, never while a backend, a listener or the cache is called.
pub(crate) struct Table {
    owner: u64,
    state: Mutex<State>,
    carried: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    generation: u64,
    /// What the backend enumerated, until something happens to a device.
    listed: Option<Arc<[DeviceInfo]>>,
    entries: HashMap<DeviceId, Entry>,
}

enum Entry {
    /// There is a handle for it.
    Live(Device),
    /// Its handles were reset. The next one takes over the life of this one.
    Dormant(Device),
    /// Its teardown has begun.
    Leaving {
        device: Device,
        /// Who carries it on just now.
        runner: Option<ThreadId>,
        /// Whether the layers above have heard of it.
        told: bool,
    },
}

/// The answer to a wish for a handle.
pub(crate) enum Opened {
    Handle(Device),
    /// The teardown of this earlier handle has to end first.
    Leaving(Device),
}

/// The right to carry on one teardown. Given back when dropped, finished or not.
pub(crate) struct Teardown<'a> {
    table: &'a Table,
    device: Device,
    told: bool,
    finished: bool,
}

impl Table {
    pub(crate) fn new(owner: u64) -> Self {
        Self { owner, state: Mutex::default(), carried: Condvar::new() }
    }

    pub(crate) fn listed(&self) -> Option<Arc<[DeviceInfo]>> {
        self.lock().listed.clone()
    }

    pub(crate) fn list(&self, infos: Vec<DeviceInfo>) -> Arc<[DeviceInfo]> {
        let infos = Arc::from(infos);
        self.lock().listed = Some(Arc::clone(&infos));
        infos
    }

    /// The handle of this device: the one that is there, or the first of a new generation.
    pub(crate) fn open(&self, info: &DeviceInfo) -> Result<Opened, RuntimeError> {
        let mut state = self.lock();
        if state.closed {
            return Err(RuntimeError::ShutDown);
        }
        let life = match state.entries.get(&info.id) {
            Some(Entry::Live(device)) => return Ok(Opened::Handle(device.clone())),
            Some(Entry::Leaving { device, .. }) => return Ok(Opened::Leaving(device.clone())),
            Some(Entry::Dormant(device)) => Arc::clone(device.life()),
            None => Arc::new(Life::new(info.id)),
        };
        state.generation += 1;
        let device = Device::new(self.owner, state.generation, info.clone(), life);
        state.entries.insert(info.id, Entry::Live(device.clone()));
        Ok(Opened::Handle(device))
    }

    /// Takes the device out of the table, and with it the right to tear it down. `None` when that
    /// was done already. Another thread's teardown of it is waited for until the deadline.
    pub(crate) fn tear_down(
        &self,
        device: &Device,
        deadline: Instant,
    ) -> Result<Option<Teardown<'_>>, RuntimeError> {
        let me = thread::current().id();
        let id = device.id();
        let mut state = self.lock();
        loop {
            state.leave(&id, Some(device));
            match state.entries.get_mut(&id) {
                Some(Entry::Leaving { device: leaving, runner, told }) if leaving == device => {
                    match runner {
                        None => {
                            *runner = Some(me);
                            let (device, told) = (device.clone(), *told);
                            return Ok(Some(Teardown {
                                table: self,
                                device,
                                told,
                                finished: false,
                            }));
                        }
                        Some(runner) if *runner == me => {
                            return Err(RuntimeError::TeardownRunning { device: id });
                        }
                        Some(_) => {}
                    }
                }
                _ if device.phase() == Phase::Gone => return Ok(None),
                _ => return Err(RuntimeError::DeviceDestroyed { device: id }),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(RuntimeError::TeardownRunning { device: id });
            }
            state =
                self.carried.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Somebody else says that this device is being destroyed: its handle is good no more, and its
    /// teardown is carried on by whoever asks for it, or for a new handle, next.
    pub(crate) fn hear_of_destruction(&self, id: &DeviceId) {
        let mut state = self.lock();
        state.leave(id, None);
        if let Some(Entry::Leaving { told, .. }) = state.entries.get_mut(id) {
            *told = true;
        }
    }

    /// Retires every live handle, and says whose. The devices live on.
    pub(crate) fn reset(&self) -> Vec<DeviceId> {
        let mut state = self.lock();
        state.listed = None;
        let mut reset = Vec::new();
        for (id, entry) in &mut state.entries {
            if let Entry::Live(device) = entry {
                device.advance(Phase::Retired);
                *entry = Entry::Dormant(device.clone());
                reset.push(*id);
            }
        }
        reset
    }

    /// Begins the teardown of everything, and makes no handle any more. Gives what is to be torn
    /// down, in order.
    pub(crate) fn close(&self) -> Vec<Device> {
        let mut state = self.lock();
        state.closed = true;
        let mut ids: Vec<_> = state.entries.keys().copied().collect();
        ids.sort();
        ids.iter().filter_map(|id| state.leave(id, None)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Has the device leave, if there is one: with `only`, no other than the one of this handle,
    /// which must be live. Gives the device that is leaving now.
    fn leave(&mut self, id: &DeviceId, only: Option<&Device>) -> Option<Device> {
        let entry = self.entries.get_mut(id)?;
        let device = match entry {
            Entry::Leaving { device, .. } => return Some(device.clone()),
            Entry::Live(device) if only.is_none_or(|only| only == device) => device.clone(),
            Entry::Dormant(device) if only.is_none() => device.clone(),
            _ => return None,
        };
        device.advance(Phase::Leaving);
        *entry = Entry::Leaving { device: device.clone(), runner: None, told: false };
        Some(device)
    }
}

impl Teardown<'_> {
    /// Whether the layers above have heard of it already, from an earlier call or somebody else.
    pub(crate) fn told(&self) -> bool {
        self.told
    }

    pub(crate) fn set_told(&mut self) {
        self.told = true;
    }

    /// The device is gone; the next one of its identity is a new life.
    pub(crate) fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Teardown<'_> {
    fn drop(&mut self) {
        let id = self.device.id();
        let mut state = self.table.lock();
        if self.finished {
            self.device.advance(Phase::Gone);
            state.entries.remove(&id);
            state.listed = None;
        } else if let Some(Entry::Leaving { runner, told, .. }) = state.entries.get_mut(&id) {
            *runner = None;
            *told = self.told;
        }
        drop(state);
        self.table.carried.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use grainstore::{DeviceId, Family};

    use super::*;

    fn open(table: &Table) -> Device {
        let id = DeviceId::new(Family::HOST, 0);
        let info = DeviceInfo { id, name: "a".into(), driver: "b".into() };
        match table.open(&info).unwrap() {
            Opened::Handle(device) => device,
            Opened::Leaving(device) => panic!("{device:?} is leaving"),
        }
    }

    #[test]
    fn a_life_outlasts_a_reset_and_ends_with_a_teardown() {
        let table = Table::new(0);
        let first = open(&table);
        table.reset();
        let second = open(&table);
        assert_ne!(first, second);
        assert!(Arc::ptr_eq(first.life(), second.life()));

        table.tear_down(&second, Instant::now()).unwrap().unwrap().finish();
        let third = open(&table);
        assert!(!Arc::ptr_eq(second.life(), third.life()));
    }

    #[test]
    fn an_unfinished_teardown_can_be_taken_up_by_the_next_call_and_by_it_alone() {
        let table = Table::new(0);
        let device = open(&table);
        let mut teardown = table.tear_down(&device, Instant::now()).unwrap().unwrap();
        let again = table.tear_down(&device, Instant::now());
        assert!(matches!(again, Err(RuntimeError::TeardownRunning { .. })));
        teardown.set_told();
        drop(teardown);
        let teardown = table.tear_down(&device, Instant::now()).unwrap().unwrap();
        assert!(teardown.told());
        teardown.finish();
        assert!(table.tear_down(&device, Instant::now()).unwrap().is_none());
    }
}
