//! The cache and its reference side by side.

use std::collections::HashMap;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Drain, Error, Family, Ownership, Pinned, Slot, View};
use proptest::prelude::prop::sample::Index;

use super::reference::{Answer, Figures, Id, Op, Reference, lives_on};
use crate::common::{Module, World, check, failure, parts};

pub(crate) struct System {
    world: World,
    cache: Cache<u64, Module>,
    borrows: bool,
    pins: Vec<Pinned<Module>>,
    drains: Vec<Drain<u64>>,
    slots: HashMap<Id, Slot<u64, Module>>,
    reference: Reference,
}

fn device(bit: usize) -> DeviceId {
    DeviceId::new(Family::CUDA, bit as u32)
}

fn view(cache: &Cache<u64, Module>, devices: usize) -> View<'_, u64, Module> {
    let all: Vec<_> =
        [2, 1].into_iter().filter(|&bit| lives_on(devices, bit)).map(device).collect();
    cache.on_all(&all)
}

fn answer(result: &Result<Pinned<Module>, Error>) -> Answer {
    match result {
        Ok(pin) => Answer::Value(pin.serial),
        Err(Error::Build(_)) => Answer::Failed,
        Err(Error::Panicked { .. }) => Answer::Panicked,
        Err(error) if error.is_busy() => Answer::Busy(parts(error)),
        Err(_) => Answer::Doomed,
    }
}

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values
}

fn choose(index: &Index, among: usize) -> Option<usize> {
    (among > 0).then(|| index.index(among))
}

impl System {
    pub(crate) fn new(capacity: Option<usize>, borrows: bool) -> Self {
        let world = World::default();
        let mut builder = world.builder();
        if let Some(capacity) = capacity {
            builder = builder.capacity(capacity);
        }
        if borrows {
            builder = builder.ownership(Ownership::Borrows);
        }
        Self {
            cache: builder.build().unwrap(),
            world,
            borrows,
            pins: Vec::new(),
            drains: Vec::new(),
            slots: HashMap::new(),
            reference: Reference { capacity, ..Reference::default() },
        }
    }

    /// Keeps the pin of a request, or drops it, on both sides.
    fn hold(&mut self, pin: Option<Pinned<Module>>, keep: bool) {
        if let Some(pin) = pin.filter(|_| keep) {
            self.reference.pin(pin.serial);
            self.pins.push(pin);
        }
    }

    /// A request that is no hit: what the reference says of its build.
    fn expect(&mut self, id: Id, end: impl FnOnce(&mut Reference) -> Answer) -> Answer {
        if let Some(serial) = self.reference.get(id) {
            return Answer::Value(serial);
        }
        match self.reference.start_build() {
            Ok(()) => end(&mut self.reference),
            Err(busy) => busy,
        }
    }

    fn request(&mut self, id: Id, keep: bool, by_slot: bool) -> (Answer, Answer) {
        let expected = self.expect(id, |model| Answer::Value(model.finish_build(id)));
        let build = || self.world.build(id.0);
        let result = if by_slot {
            let slot = self.slots.entry(id).or_insert_with(|| view(&self.cache, id.1).slot(id.0));
            slot.get_or_build(build)
        } else {
            view(&self.cache, id.1).get_or_build(&id.0, build)
        };
        let got = answer(&result);
        self.hold(result.ok(), keep);
        (expected, got)
    }

    fn nested(&mut self, id: Id, inner: Id) -> (Answer, Answer) {
        let mut inner_expected = None;
        let expected = self.expect(id, |model| {
            inner_expected = Some(match model.get(inner) {
                Some(serial) => Answer::Value(serial),
                None => match model.start_build() {
                    Ok(()) => Answer::Value(model.finish_build(inner)),
                    Err(busy) => busy,
                },
            });
            Answer::Value(model.finish_build(id))
        });
        let mut inner_got = None;
        let result = view(&self.cache, id.1).get_or_build(&id.0, || {
            let build = || self.world.build(inner.0);
            inner_got = Some(answer(&view(&self.cache, inner.1).get_or_build(&inner.0, build)));
            self.world.build(id.0)
        });
        assert_eq!(inner_expected, inner_got, "the inner request");
        (expected, answer(&result))
    }

    fn doomed(&mut self, id: Id, by: usize) -> (Answer, Answer) {
        // Not every build can be doomed by everything.
        let by = match by {
            1 if id.1 != 0 => 1,
            2 if self.borrows => 2,
            _ => 0,
        };
        let evicted = if lives_on(id.1, 1) { 1 } else { 2 };
        let expected = self.expect(id, |model| {
            match by {
                0 => {}
                1 => model.evict_device(evicted),
                _ => model.clear(),
            }
            if by > 0 {
                model.drains.pop();
            }
            model.finish_doomed(id);
            Answer::Doomed
        });
        let result = view(&self.cache, id.1).get_or_build(&id.0, || {
            drop(match by {
                0 => view(&self.cache, id.1).remove(&id.0),
                1 => self.cache.evict_device(&device(evicted)),
                _ => self.cache.clear(),
            });
            self.world.build(id.0)
        });
        (expected, answer(&result))
    }

    fn look_up(&mut self, id: Id, keep: bool, by_slot: bool) -> (Option<usize>, Option<usize>) {
        let expected = self.reference.get(id);
        let found = if by_slot {
            let slot = self.slots.entry(id).or_insert_with(|| view(&self.cache, id.1).slot(id.0));
            slot.get()
        } else {
            view(&self.cache, id.1).get(&id.0)
        };
        let got = found.as_ref().map(|pin| pin.serial);
        self.hold(found, keep);
        (expected, got)
    }

    pub(crate) fn apply(&mut self, op: &Op, context: &str) {
        match op {
            Op::Build { id, keep } => same(self.request(*id, *keep, false), context),
            Op::BuildBySlot { id, keep } => same(self.request(*id, *keep, true), context),
            Op::Fail { id, panic } => {
                let ending = if *panic { Answer::Panicked } else { Answer::Failed };
                let expected = self.expect(*id, |model| {
                    model.fail_build();
                    ending
                });
                let result = view(&self.cache, id.1).get_or_build(&id.0, || {
                    if *panic {
                        // Quietly: not through the panic hook.
                        std::panic::resume_unwind(Box::new("no"));
                    }
                    Err(failure("no"))
                });
                same((expected, answer(&result)), context);
            }
            // A build that asks for itself is a cycle, which has tests of its own.
            Op::Nested { id, inner } if id == inner => {}
            Op::Nested { id, inner } => same(self.nested(*id, *inner), context),
            Op::Doomed { id, by } => same(self.doomed(*id, *by), context),
            Op::Get { id, keep } => same(self.look_up(*id, *keep, false), context),
            Op::GetBySlot { id, keep } => same(self.look_up(*id, *keep, true), context),
            Op::ClonePin(index) => {
                if let Some(at) = choose(index, self.pins.len()) {
                    let clone = self.pins[at].clone();
                    self.reference.pin(clone.serial);
                    self.pins.push(clone);
                }
            }
            Op::DropPin(index) => {
                if let Some(at) = choose(index, self.pins.len()) {
                    drop(self.pins.swap_remove(at));
                    self.reference.unpin(at);
                }
            }
            Op::Remove(id) => {
                let drain = view(&self.cache, id.1).remove(&id.0);
                self.drains.push(drain);
                self.reference.remove(*id);
            }
            Op::EvictDevice(bit) => {
                self.drains.push(self.cache.evict_device(&device(*bit)));
                self.reference.evict_device(*bit);
            }
            Op::Clear => {
                self.drains.push(self.cache.clear());
                self.reference.clear();
            }
            Op::SetBusy { key, busy } => {
                self.world.set_busy(*key, *busy);
                if *busy {
                    self.reference.busy.insert(*key);
                } else {
                    self.reference.busy.remove(key);
                }
            }
            Op::Reap => same((self.reference.reap(), self.cache.reap()), context),
            Op::AskRoom => {
                let room = self.cache.wait_for_room(Duration::ZERO);
                same((self.reference.ask_room(), room), context);
            }
            Op::Wait(index) => {
                if let Some(at) = choose(index, self.drains.len()) {
                    let done = self.drains[at].wait_timeout(Duration::ZERO);
                    same((self.reference.wait(at), done), context);
                }
            }
            Op::Abandon(index) => {
                if let Some(at) = choose(index, self.drains.len()) {
                    let count = self.drains.swap_remove(at).abandon();
                    same((self.reference.abandon(at), count), context);
                }
            }
            Op::DropDrain(index) => {
                if let Some(at) = choose(index, self.drains.len()) {
                    drop(self.drains.swap_remove(at));
                    self.reference.drains.swap_remove(at);
                }
            }
        }
        self.compare(context);
    }

    /// Everything that can be seen without changing it.
    fn compare(&mut self, context: &str) {
        let (cache, model) = (&self.cache, &mut self.reference);
        check(cache);
        let figures = cache.statistics();
        assert_eq!(cache.len(), model.resident.len(), "{context}");
        assert_eq!(figures.retired as usize, model.retired.len(), "{context}");
        let got = Figures {
            building: figures.building as usize,
            hits: figures.hits,
            misses: figures.misses,
            evictions: figures.evictions,
            refused: figures.refused,
            built: figures.built,
            released: figures.released,
            abandoned: figures.abandoned,
            failures: figures.build_failures,
            doomed: figures.doomed,
        };
        assert_eq!(model.figures, got, "{context}");
        // Where one call releases several, in any order.
        let released = self.world.take_released();
        let expected = std::mem::take(&mut model.released);
        assert_eq!(sorted(expected), sorted(released), "released in {context}");
        let asked = std::mem::take(&mut model.asked);
        assert_eq!(sorted(asked), sorted(self.world.take_asked()), "asked in {context}");
        for (drain, covered) in self.drains.iter().zip(&model.drains) {
            assert_eq!(
                (drain.released(), drain.pending()),
                (covered.released, covered.pending.len())
            );
            let keys = covered.pending.iter().map(|&serial| {
                model.retired.iter().find(|value| value.serial == serial).unwrap().id.0
            });
            assert_eq!(sorted(keys.collect()), sorted(drain.pending_keys()), "{context}");
        }
        for (pin, serial) in self.pins.iter().zip(&model.pins) {
            assert_eq!(pin.serial, *serial, "{context}");
        }
    }

    /// Lets everything go, the last handle too.
    pub(crate) fn finish(mut self) {
        while !self.pins.is_empty() {
            let last = self.pins.len() - 1;
            drop(self.pins.swap_remove(last));
            self.reference.unpin(last);
            self.compare("the end");
        }
        let abandoned = self.cache.statistics().abandoned as usize;
        self.slots.clear();
        drop(self.cache);
        assert_eq!(self.world.alive(), abandoned, "busy or not, all is released in the end");
    }
}

fn same<T: PartialEq + std::fmt::Debug>((expected, got): (T, T), context: &str) {
    assert_eq!(expected, got, "{context}");
}
