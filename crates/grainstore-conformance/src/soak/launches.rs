//! The threads that launch: they ask for kernels and plans, launch them, check the numbers, and hold
//! some pins past whatever the others tear down.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::sync::{Mutex, PoisonError};
use std::thread;

use grainstore::DeviceId;
use grainstore_runtime::{Device, Kernel};

use super::ground::{Denied, Ground, KERNELS};
use super::plans::{Plan, Work};
use super::random::Random;
use crate::Subject;

/// Pins that a thread keeps beyond a launch.
const HELD: usize = 2;

/// One thread that launches.
pub(super) struct Launcher<'g, S: Subject> {
    ground: &'g Ground<S>,
    random: Random,
    /// Handles of devices, as they were last had.
    handles: Vec<Device>,
    /// Kernels that stay pinned.
    held: VecDeque<(Kernel, u32)>,
    /// Where work goes that is not done at once.
    later: SyncSender<Work>,
}

impl<'g, S: Subject> Launcher<'g, S> {
    pub(super) fn new(ground: &'g Ground<S>, random: Random, later: SyncSender<Work>) -> Self {
        Self { ground, random, handles: Vec::new(), held: VecDeque::new(), later }
    }

    /// Goes on until the runtime is shut down.
    pub(super) fn run(mut self) {
        loop {
            match self.step() {
                Ok(()) => {}
                Err(Denied::Over) => return self.let_go(),
                Err(Denied::Gone) => {
                    self.handles.clear();
                    self.let_go();
                    // Whoever tears the device down should get on.
                    thread::yield_now();
                }
                // Others have the places; one pin less is a start.
                Err(Denied::Busy) => drop(self.held.pop_front()),
                Err(Denied::Doomed) => {}
            }
        }
    }

    fn step(&mut self) -> Result<(), Denied> {
        let id = self.ground.any_device(&mut self.random);
        let device = self.handle(&id)?;
        let number = self.random.below(KERNELS as usize) as u32;
        match self.random.below(10) {
            0..=5 => self.launch(&device, number),
            6..=8 => self.plan(&device, number),
            _ => {
                if let Some((kernel, number)) = self.held.front() {
                    self.ground.launch(kernel, *number);
                }
                Ok(())
            }
        }
    }

    fn launch(&mut self, device: &Device, number: u32) -> Result<(), Denied> {
        let ground = self.ground;
        let kernel = ground.runtime.kernel(device, ground.spec(number));
        let kernel = kernel.map_err(|error| ground.denied(error))?;
        ground.launch(&kernel, number);
        if self.random.below(4) == 0 {
            self.held.push_back((kernel, number));
        }
        if self.held.len() > HELD {
            self.held.pop_front();
        }
        Ok(())
    }

    fn plan(&mut self, device: &Device, number: u32) -> Result<(), Denied> {
        let plan = Plan::get(self.ground, device, number)?;
        let work = Plan::begin(&plan);
        drop(plan);
        match self.later.try_send(work) {
            Ok(()) => {}
            Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => {
                work.finish(self.ground);
            }
        }
        Ok(())
    }

    /// Lets go of everything, and of each kernel not before it was launched once more: whatever
    /// became of its device, a pin keeps it good.
    fn let_go(&mut self) {
        for (kernel, number) in self.held.drain(..) {
            self.ground.launch(&kernel, number);
        }
    }

    fn handle(&mut self, id: &DeviceId) -> Result<Device, Denied> {
        if let Some(known) = self.handles.iter().find(|device| device.id() == *id) {
            return Ok(known.clone());
        }
        let device = self.ground.open(id)?;
        self.handles.push(device.clone());
        Ok(device)
    }
}

/// Does the work that others left, until there is nobody who would leave any.
pub(super) fn finish_work<S: Subject>(ground: &Ground<S>, queue: &Mutex<Receiver<Work>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(work) => work.finish(ground),
            Err(_) => return,
        }
    }
}
