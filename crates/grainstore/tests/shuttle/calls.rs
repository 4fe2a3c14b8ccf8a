//! What threads do, and what callbacks do in turn.

use std::time::Duration;

use grainstore::{Bookmark, Drain, Error, Pinned, View};

use crate::world::{Grain, World, device, failure, key, one_in, panic_on_purpose, roll};

impl World {
    pub(crate) fn view<R>(
        &self,
        on_device: bool,
        look: impl FnOnce(&View<'_, u8, Grain>) -> R,
    ) -> R {
        if on_device {
            look(&self.kernels().on(&device()))
        } else {
            look(&self.kernels().on_all(&[]))
        }
    }

    /// The inside of a build: it may fail, panic, and ask in turn.
    fn build(&self, key: u8, on_device: bool, depth: u32) -> Result<Grain, std::io::Error> {
        match roll(10) {
            0 => panic_on_purpose(),
            1 => return Err(failure()),
            2 | 3 if depth > 0 => self.request(depth - 1),
            4 if depth > 0 => self.inside(),
            _ => shuttle::thread::yield_now(),
        }
        Ok(self.make(key, on_device))
    }

    pub(crate) fn request(&self, depth: u32) {
        let (key, on_device) = (key(), one_in(3));
        let answer = self
            .view(on_device, |view| view.get_or_build(&key, || self.build(key, on_device, depth)));
        self.use_answer(answer, key, on_device);
    }

    pub(crate) fn use_answer(
        &self,
        answer: Result<Pinned<Grain>, Error>,
        key: u8,
        on_device: bool,
    ) {
        let pin = match answer {
            Ok(pin) => pin,
            Err(error) => return self.check_error(&error),
        };
        self.look(&pin, key, on_device);
        match roll(4) {
            0 => self.push(pin),
            1 => {
                let clone = pin.clone();
                drop(pin);
                shuttle::thread::yield_now();
                self.look(&clone, key, on_device);
            }
            _ => {
                shuttle::thread::yield_now();
                self.look(&pin, key, on_device);
            }
        }
    }

    /// A plan, built on one or two kernels.
    fn plan(&self) {
        let (Some(plans), plan) = (self.plans(), key()) else { return };
        let answer = plans.get_or_build(&plan, || {
            let mut kernels = Vec::new();
            for key in [plan, (plan + 1) % 3].into_iter().take(1 + roll(2) as usize) {
                kernels.push(self.kernels().get_or_build(&key, || self.build(key, false, 0))?);
            }
            Ok::<_, Error>(kernels)
        });
        if let Ok(plan) = answer {
            shuttle::thread::yield_now();
            plan.iter().for_each(|kernel| self.look(kernel, kernel.key, false));
        }
    }

    /// A call from inside a callback.
    pub(crate) fn inside(&self) {
        let kernels = self.kernels();
        match roll(8) {
            0 => drop(kernels.clear()),
            1 => drop(kernels.remove(&key())),
            2 => drop(kernels.evict_device(&device())),
            3 => drop(self.pop()),
            4 => drop(kernels.reap()),
            5 => drop(kernels.clear().wait()),
            6 => kernels.poke(),
            _ => self.request(1),
        }
    }

    fn finish(&self, drain: Drain<u8>) {
        match roll(5) {
            0 => drop(drain),
            1 => {
                self.will_abandon();
                let _ = drain.abandon();
            }
            2 => drop((drain.errors(), drain.pending_keys(), drain.released())),
            _ => drop(drain.wait_timeout(Duration::from_micros(200))),
        }
    }

    /// Anything that the contract allows.
    pub(crate) fn step(&self) {
        let kernels = self.kernels();
        match roll(27) {
            0 => self.finish(kernels.clear()),
            1 | 2 => self.finish(kernels.evict_device(&device())),
            3 | 4 => self.finish(self.view(one_in(3), |view| view.remove(&key()))),
            5 => drop(kernels.reap()),
            6 => kernels.poke(),
            7 => drop(kernels.wait_for_room(Duration::from_micros(300))),
            8..=10 => drop(self.pop()),
            11 => self.check_figures(),
            12 => drop(self.hooks().notify_device_destroy(&device())),
            13 => drop(self.hooks().around_clear(|| {
                self.finish(kernels.clear());
                Ok::<_, Error>(())
            })),
            14..=16 => self.plan(),
            17 => {
                let key = key();
                let mut slot = kernels.slot(key);
                for _ in 0..2 {
                    let answer = slot.get_or_build(|| self.build(key, false, 1));
                    self.use_answer(answer, key, false);
                }
            }
            18 => {
                let (key, bookmark) = (key(), Bookmark::new());
                if let Some(pin) = kernels.get(&key) {
                    bookmark.set(&pin);
                }
                if let Some(pin) = kernels.try_get_at(&bookmark, |_| !one_in(3)) {
                    self.use_answer(Ok(pin), key, false);
                }
            }
            19 => {
                let key = key();
                if let Some(pin) = kernels.get(&key) {
                    self.use_answer(Ok(pin), key, false);
                }
            }
            _ => self.request(2),
        }
    }

    /// Hits, and what ends them.
    pub(crate) fn hit(&self) {
        let key = roll(3) as u8;
        match roll(8) {
            0 => drop(self.kernels().remove(&key)),
            1 => drop(self.pop()),
            2 => {
                if let Some(pin) = self.kernels().get(&key) {
                    self.use_answer(Ok(pin), key, false);
                }
            }
            _ => {
                let build = || Ok::<_, Error>(self.make(key, false));
                let answer = self.kernels().get_or_build(&key, build);
                self.use_answer(answer, key, false);
            }
        }
    }
}
