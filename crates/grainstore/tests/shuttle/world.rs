//! What a run shares: the caches, and the books on every value.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use grainstore::{Builder, Cache, DeviceId, Error, Family, Hooks, Ownership, Pinned, Registration};
use shuttle::rand::Rng;

pub(crate) type Grains = Cache<u8, Grain>;
/// A plan, and the kernels it closes over.
pub(crate) type Plans = Cache<u8, Vec<Pinned<Grain>>>;

pub(crate) const KEYS: u8 = 4;
pub(crate) const PLACES: usize = 2;

/// A throw that the seed decides.
pub(crate) fn roll(sides: u32) -> u32 {
    shuttle::rand::thread_rng().gen_range(0..sides)
}

pub(crate) fn one_in(sides: u32) -> bool {
    roll(sides) == 0
}

pub(crate) fn key() -> u8 {
    roll(u32::from(KEYS)) as u8
}

pub(crate) fn device() -> DeviceId {
    DeviceId::new(Family::HIP, 0)
}

pub(crate) fn failure() -> std::io::Error {
    std::io::Error::other("on purpose")
}

/// A panic of the test's own, which no hook prints.
pub(crate) fn panic_on_purpose() -> ! {
    resume_unwind(Box::new("on purpose"))
}

/// A value that knows whether it has been released.
pub(crate) struct Grain {
    pub(crate) key: u8,
    pub(crate) on_device: bool,
    gone: AtomicBool,
}

/// Nothing in here is of shuttle's types, so that the books order nothing for the caches. Tasks
/// change nowhere but in shuttle's own operations, so that none of it is ever contended.
pub(crate) struct World {
    kernels: OnceLock<Grains>,
    plans: OnceLock<Plans>,
    hooks: Hooks,
    wires: Mutex<Vec<Registration>>,
    made: AtomicUsize,
    alive: AtomicUsize,
    released: AtomicUsize,
    abandons: AtomicBool,
    /// The run is over: callbacks do their work and no more.
    over: AtomicBool,
    pool: Mutex<Vec<Pinned<Grain>>>,
    /// The first thing that must not happen: panics in callbacks are contained.
    fault: OnceLock<String>,
}

impl World {
    fn empty() -> Self {
        Self {
            kernels: OnceLock::new(),
            plans: OnceLock::new(),
            hooks: Hooks::new(),
            wires: Mutex::default(),
            made: AtomicUsize::new(0),
            alive: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
            abandons: AtomicBool::new(false),
            over: AtomicBool::new(false),
            pool: Mutex::default(),
            fault: OnceLock::new(),
        }
    }

    /// Caches of two levels, configured at random, and their hooks.
    pub(crate) fn new() -> Arc<Self> {
        let world = Arc::new(Self::empty());
        let mut builder = world.builder(1 + roll(3) as usize);
        if !one_in(4) {
            let asked = Arc::downgrade(&world);
            builder = builder.idle(move |grain| of(&asked).is_idle(grain));
        }
        if one_in(4) {
            builder = builder.may_release(|| !one_in(4));
        }
        if one_in(4) {
            builder = builder.takeover_after(Duration::from_millis(1));
        }
        if one_in(4) {
            builder = builder.weigher(|key, _| u64::from(key % 3)).max_weight(3);
        }
        if one_in(3) {
            builder = builder.ownership(Ownership::Borrows);
        }
        if one_in(3) {
            builder = builder.observer(|_| shuttle::thread::yield_now());
        }
        let kernels = builder.build().unwrap();
        let plans = Cache::builder()
            .capacity(2)
            .borrows_from(&kernels)
            .idle(|_| !one_in(5))
            .build()
            .unwrap();
        let wires = vec![plans.listen(&world.hooks), kernels.listen(&world.hooks)];
        *world.wires.lock().unwrap() = wires;
        assert!(world.kernels.set(kernels).is_ok() && world.plans.set(plans).is_ok());
        world
    }

    /// One cache without callbacks but its release.
    pub(crate) fn plain() -> Arc<Self> {
        let world = Arc::new(Self::empty());
        let release = Arc::downgrade(&world);
        let kernels = Cache::builder()
            .capacity(PLACES)
            .release(move |grain: Grain| of(&release).close(&grain))
            .build()
            .unwrap();
        assert!(world.kernels.set(kernels).is_ok());
        world
    }

    fn builder(self: &Arc<Self>, places: usize) -> Builder<u8, Grain> {
        let release = Arc::downgrade(self);
        Cache::builder().capacity(places).release(move |grain: Grain| of(&release).release(&grain))
    }

    pub(crate) fn kernels(&self) -> &Grains {
        self.kernels.get().unwrap()
    }

    pub(crate) fn plans(&self) -> Option<&Plans> {
        self.plans.get()
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    pub(crate) fn expect(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            let _ = self.fault.set(what());
        }
    }

    pub(crate) fn will_abandon(&self) {
        self.abandons.store(true, Ordering::Relaxed);
    }

    pub(crate) fn make(&self, key: u8, on_device: bool) -> Grain {
        self.made.fetch_add(1, Ordering::Relaxed);
        let alive = self.alive.fetch_add(1, Ordering::Relaxed) + 1;
        let places = self.kernels().capacity().unwrap();
        self.expect(alive <= places || self.abandons.load(Ordering::Relaxed), || {
            format!("{alive} values alive in {places} places")
        });
        Grain { key, on_device, gone: AtomicBool::new(false) }
    }

    pub(crate) fn look(&self, grain: &Grain, key: u8, on_device: bool) {
        self.expect(!grain.gone.load(Ordering::Relaxed), || format!("{key} gone under a pin"));
        self.expect((grain.key, grain.on_device) == (key, on_device), || {
            format!("asked for {key}, {on_device}, got {}, {}", grain.key, grain.on_device)
        });
    }

    /// A callback's throw; the highest when the run is over.
    fn throw(&self, sides: u32) -> u32 {
        if self.over.load(Ordering::Relaxed) { sides - 1 } else { roll(sides) }
    }

    fn is_idle(&self, grain: &Grain) -> bool {
        self.expect(!grain.gone.load(Ordering::Relaxed), || "asked after its release".to_owned());
        match self.throw(12) {
            0 => panic_on_purpose(),
            1 | 2 => return false,
            3 => self.inside(),
            4 => drop(self.view(grain.on_device, |view| view.get(&grain.key))),
            5 => shuttle::thread::yield_now(),
            _ => {}
        }
        self.expect(!grain.gone.load(Ordering::Relaxed), || "released while asked".to_owned());
        true
    }

    /// The end of a value.
    fn close(&self, grain: &Grain) {
        let twice = grain.gone.swap(true, Ordering::Relaxed);
        self.expect(!twice, || format!("{} released twice", grain.key));
        self.released.fetch_add(1, Ordering::Relaxed);
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }

    fn release(&self, grain: &Grain) -> Result<(), std::io::Error> {
        if self.throw(6) == 0 {
            self.inside();
        }
        shuttle::thread::yield_now();
        self.close(grain);
        match self.throw(8) {
            0 => panic_on_purpose(),
            1 => Err(failure()),
            _ => Ok(()),
        }
    }

    pub(crate) fn push(&self, pin: Pinned<Grain>) {
        let first = {
            let mut pool = self.pool.lock().unwrap();
            pool.push(pin);
            // So that not all is pinned for ever.
            (pool.len() > PLACES).then(|| pool.remove(0))
        };
        drop(first);
    }

    pub(crate) fn pop(&self) -> Option<Pinned<Grain>> {
        self.pool.lock().unwrap().pop()
    }

    /// What the answer `Busy` says adds up.
    pub(crate) fn check_error(&self, error: &Error) {
        if let Error::Busy { capacity, pinned, busy, building, retired } = error {
            self.expect(*capacity == pinned + busy + building + retired, || error.to_string());
        }
    }

    pub(crate) fn check_figures(&self) {
        let figures = self.kernels().statistics();
        let taken = (figures.entries + figures.retired) as usize;
        let places = self.kernels().capacity().unwrap();
        self.expect(taken <= places, || format!("{figures:?}"));
        let live = figures.entries - figures.building + figures.retired;
        let balanced = figures.built == figures.released + figures.abandoned + live;
        self.expect(balanced, || format!("{figures:?}"));
    }

    /// Lets everything go; then all must be gone, and each once.
    pub(crate) fn end(self: Arc<Self>) {
        self.over.store(true, Ordering::Relaxed);
        let pool = std::mem::take(&mut *self.pool.lock().unwrap());
        drop(pool);
        if let Some(plans) = self.plans() {
            let _ = plans.clear().wait();
        }
        let kernels = self.kernels();
        let _ = kernels.clear().wait();
        // Plans that are busy, and releases that are not allowed, are still thrown for.
        for _ in 0..1_000 {
            self.plans().map(Cache::reap);
            if kernels.statistics().retired == 0 {
                break;
            }
            kernels.reap();
        }
        let figures = kernels.statistics();
        let context = format!("{figures:?}");
        let left = (figures.entries, figures.building, figures.retired);
        assert_eq!(left, (0, 0, 0), "{context}");
        assert_eq!(figures.built, figures.released + figures.abandoned, "{context}");
        let released = self.released.load(Ordering::Relaxed) as u64;
        assert_eq!(figures.released, released, "{context}");
        let alive = self.alive.load(Ordering::Relaxed) as u64;
        assert_eq!(alive, figures.abandoned, "{context}");
        assert_eq!(self.fault.get(), None, "{context}");
    }
}

/// A callback's world, which outlives its caches.
fn of(world: &Weak<World>) -> Arc<World> {
    world.upgrade().unwrap()
}
