//! What a cache should do, written as plainly as can be: vectors, no threads, no cleverness.

use std::collections::HashSet;

use proptest::prelude::prop;

/// A key, and the set of devices it is asked for on: none, A, B, or both.
pub(crate) type Id = (u64, usize);

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Build {
        id: Id,
        keep: bool,
    },
    BuildBySlot {
        id: Id,
        keep: bool,
    },
    Fail {
        id: Id,
        panic: bool,
    },
    /// A build that builds another.
    Nested {
        id: Id,
        inner: Id,
    },
    /// A build that is doomed while it runs: by a removal, its device's eviction, a clear.
    Doomed {
        id: Id,
        by: usize,
    },
    Get {
        id: Id,
        keep: bool,
    },
    GetBySlot {
        id: Id,
        keep: bool,
    },
    ClonePin(prop::sample::Index),
    DropPin(prop::sample::Index),
    Remove(Id),
    EvictDevice(usize),
    Clear,
    SetBusy {
        key: u64,
        busy: bool,
    },
    Reap,
    AskRoom,
    Wait(prop::sample::Index),
    Abandon(prop::sample::Index),
    DropDrain(prop::sample::Index),
}

/// Whether a value of these devices lives on that one.
pub(crate) fn lives_on(devices: usize, device: usize) -> bool {
    devices & device != 0
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) id: Id,
    pub(crate) serial: usize,
    pub(crate) pins: usize,
}

/// What a teardown still waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covered {
    pub(crate) pending: Vec<usize>,
    pub(crate) released: usize,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The value of that serial number.
    Value(usize),
    Failed,
    Panicked,
    Doomed,
    /// Pinned, busy, building, retired.
    Busy([usize; 4]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) building: usize,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) evictions: u64,
    pub(crate) refused: u64,
    pub(crate) built: u64,
    pub(crate) released: u64,
    pub(crate) abandoned: u64,
    pub(crate) failures: u64,
    pub(crate) doomed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) capacity: Option<usize>,
    /// The least recently used first.
    pub(crate) resident: Vec<Value>,
    pub(crate) retired: Vec<Value>,
    pub(crate) forgotten: Vec<Value>,
    pub(crate) busy: HashSet<u64>,
    /// Serial numbers, one for each pin that is held, in the order in which the test holds them.
    pub(crate) pins: Vec<usize>,
    pub(crate) drains: Vec<Covered>,
    pub(crate) figures: Figures,
    /// Serial numbers in the order of release.
    pub(crate) released: Vec<usize>,
    /// Keys that `idle` was asked about since this was last emptied.
    pub(crate) asked: Vec<u64>,
    /// How many values were made: the next one's serial number, less one.
    pub(crate) made: usize,
}

impl Reference {
    fn idle(&mut self, value: &Value) -> bool {
        self.asked.push(value.id.0);
        !self.busy.contains(&value.id.0)
    }

    fn released(&mut self, serial: usize) {
        self.released.push(serial);
        self.figures.released += 1;
        for drain in &mut self.drains {
            if let Some(at) = drain.pending.iter().position(|&pending| pending == serial) {
                drain.pending.swap_remove(at);
                drain.released += 1;
            }
        }
    }

    /// Releases a retired value if nobody pins it and it is idle.
    fn settle(&mut self, serial: usize) -> bool {
        let Some(at) = self.retired.iter().position(|value| value.serial == serial) else {
            return false;
        };
        let value = self.retired[at].clone();
        if value.pins > 0 || !self.idle(&value) {
            return false;
        }
        self.retired.remove(at);
        self.released(serial);
        true
    }

    pub(crate) fn reap(&mut self) -> usize {
        let all: Vec<_> = self.retired.iter().map(|value| value.serial).collect();
        all.into_iter().filter(|&serial| self.settle(serial)).count()
    }

    fn is_full(&self) -> bool {
        let taken = self.resident.len() + self.retired.len() + self.figures.building;
        self.capacity.is_some_and(|capacity| taken >= capacity)
    }

    /// The least recently used idle value.
    fn victim(&mut self) -> Option<usize> {
        (0..self.resident.len()).find(|&at| {
            let value = self.resident[at].clone();
            value.pins == 0 && self.idle(&value)
        })
    }

    pub(crate) fn ask_room(&mut self) -> bool {
        self.reap();
        !self.is_full() || self.victim().is_some()
    }

    /// A look-up: a hit is a use.
    pub(crate) fn get(&mut self, id: Id) -> Option<usize> {
        let at = self.resident.iter().position(|value| value.id == id)?;
        let value = self.resident.remove(at);
        let serial = value.serial;
        self.resident.push(value);
        self.figures.hits += 1;
        Some(serial)
    }

    /// A place for a build, at the cost of a victim if need be.
    pub(crate) fn start_build(&mut self) -> Result<(), Answer> {
        let placed = !self.is_full();
        self.figures.building += usize::from(placed);
        self.reap();
        if !placed {
            if self.is_full() {
                let Some(at) = self.victim() else {
                    self.figures.refused += 1;
                    let pinned = self.resident.iter().filter(|value| value.pins > 0).count();
                    let busy = self.resident.len() - pinned;
                    let building = self.figures.building;
                    return Err(Answer::Busy([pinned, busy, building, self.retired.len()]));
                };
                let victim = self.resident.remove(at);
                self.figures.evictions += 1;
                self.released(victim.serial);
            }
            self.figures.building += 1;
        }
        self.figures.misses += 1;
        Ok(())
    }

    pub(crate) fn fail_build(&mut self) {
        self.figures.building -= 1;
        self.figures.failures += 1;
    }

    pub(crate) fn finish_build(&mut self, id: Id) -> usize {
        self.figures.building -= 1;
        self.figures.built += 1;
        self.made += 1;
        self.resident.push(Value { id, serial: self.made, pins: 0 });
        self.made
    }

    /// The build's value is let go at once; nothing covers it any more.
    pub(crate) fn finish_doomed(&mut self, id: Id) {
        let serial = self.finish_build(id);
        self.figures.doomed += 1;
        let value = self.resident.pop();
        self.retired.extend(value);
        self.settle(serial);
    }

    fn find(&mut self, serial: usize) -> &mut Value {
        let all = self.resident.iter_mut().chain(&mut self.retired).chain(&mut self.forgotten);
        all.into_iter().find(|value| value.serial == serial).expect("a pinned value is there")
    }

    pub(crate) fn pin(&mut self, serial: usize) {
        self.find(serial).pins += 1;
        self.pins.push(serial);
    }

    pub(crate) fn unpin(&mut self, at: usize) {
        let serial = self.pins.swap_remove(at);
        self.find(serial).pins -= 1;
        self.settle(serial);
    }

    /// Retires these, and starts a drain over them and what else it covers.
    fn retire(&mut self, which: impl Fn(&Value) -> bool, also: impl Fn(&Value) -> bool) {
        let covered = self.retired.iter().filter(|value| also(value));
        let mut drain =
            Covered { pending: covered.map(|value| value.serial).collect(), released: 0 };
        let (gone, left) = self.resident.drain(..).partition(|value| which(value));
        self.resident = left;
        drain.pending.extend(gone.iter().map(|value: &Value| value.serial));
        self.retired.extend(gone);
        let all = drain.pending.clone();
        self.drains.push(drain);
        for serial in all {
            self.settle(serial);
        }
    }

    pub(crate) fn remove(&mut self, id: Id) {
        self.retire(|value| value.id == id, |_| false);
    }

    pub(crate) fn clear(&mut self) {
        self.retire(|_| true, |_| false);
    }

    pub(crate) fn evict_device(&mut self, device: usize) {
        let on = |value: &Value| lives_on(value.id.1, device);
        self.retire(on, on);
    }

    pub(crate) fn wait(&mut self, at: usize) -> bool {
        for serial in self.drains[at].pending.clone() {
            self.settle(serial);
        }
        self.drains[at].pending.is_empty()
    }

    pub(crate) fn abandon(&mut self, at: usize) -> usize {
        let gone = self.drains.swap_remove(at).pending;
        for serial in &gone {
            let at = self.retired.iter().position(|value| value.serial == *serial);
            let value = self.retired.remove(at.expect("what a drain waits for is retired"));
            if value.pins > 0 {
                self.forgotten.push(value);
            }
            self.figures.abandoned += 1;
            for drain in &mut self.drains {
                drain.pending.retain(|pending| pending != serial);
            }
        }
        gone.len()
    }
}
