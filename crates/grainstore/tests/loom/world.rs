//! What the models share: values that know of their end, and the run of a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use loom::thread::JoinHandle;

use grainstore::{Builder, Cache, DeviceId, Error, Family, Pinned};

pub(crate) type Grains = Cache<u8, Grain>;

/// Tries the interleavings, or those with so many preemptions, and says how many those were.
/// `LOOM_MAX_PREEMPTIONS` sets another bound.
pub(crate) fn explore(
    name: &str,
    preemptions: impl Into<Option<usize>>,
    model: impl Fn() + Send + Sync + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(preemptions.into());
    builder.max_branches = 20_000;
    let bound = match builder.preemption_bound {
        Some(bound) => format!("at most {bound} preemptions"),
        None => "any number of preemptions".to_owned(),
    };
    let tried = Arc::new(AtomicUsize::new(0));
    let count = tried.clone();
    let start = Instant::now();
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let (tried, took) = (tried.load(Ordering::Relaxed), start.elapsed().as_secs_f64());
    println!("\nproof: loom: {name}: {tried} interleavings, {bound}: {took:.1} s");
}

/// What is known of all values. The threads of a model change in loom's own operations alone, so
/// that these numbers need nothing of loom, and order nothing in the model. But for the steps: see
/// [`World::step`].
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Lives>);

#[derive(Default)]
struct Lives {
    made: AtomicUsize,
    alive: AtomicUsize,
    released: AtomicUsize,
    capacity: AtomicUsize,
    busy: AtomicBool,
    steps: loom::sync::atomic::AtomicUsize,
}

/// A value.
pub(crate) struct Grain {
    pub(crate) key: u8,
    gone: Arc<AtomicBool>,
}

impl World {
    /// A step whose order among the other threads' steps loom has to try both ways.
    ///
    /// Loom leaves out an order of two accesses that it takes for independent, and for that it knows
    /// only the latest access of each word. Where one thread reads a word, and another reads it and
    /// then writes it, it does not try to let the write come first. These steps make it try: all of
    /// them change one word. They order no memory.
    pub(crate) fn step(&self) {
        self.0.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread that steps at its beginning and its end.
    pub(crate) fn spawn<T: 'static>(&self, run: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
        let world = self.clone();
        loom::thread::spawn(move || {
            world.step();
            let done = run();
            world.step();
            done
        })
    }

    /// A cache with so many places.
    pub(crate) fn cache(&self, places: usize) -> Grains {
        self.builder(places).build().unwrap()
    }

    pub(crate) fn builder(&self, places: usize) -> Builder<u8, Grain> {
        self.0.capacity.store(places, Ordering::Relaxed);
        let world = self.clone();
        Cache::builder().capacity(places).release(move |grain: Grain| world.release(&grain))
    }

    /// A builder whose cache asks this world whether its values are idle.
    pub(crate) fn asking(&self, places: usize) -> Builder<u8, Grain> {
        let world = self.clone();
        self.builder(places).idle(move |grain: &Grain| {
            assert!(!grain.gone.load(Ordering::Relaxed), "asked after its release");
            // Threads may change here.
            loom::thread::yield_now();
            !world.0.busy.load(Ordering::Relaxed)
        })
    }

    pub(crate) fn set_busy(&self, busy: bool) {
        self.0.busy.store(busy, Ordering::Relaxed);
    }

    /// What a build closure returns.
    pub(crate) fn build(&self, key: u8) -> Result<Grain, std::io::Error> {
        self.step();
        self.0.made.fetch_add(1, Ordering::Relaxed);
        let alive = self.0.alive.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(alive <= self.0.capacity.load(Ordering::Relaxed), "{alive} values are alive");
        Ok(Grain { key, gone: Arc::default() })
    }

    /// A value of that key, built or found.
    pub(crate) fn ask(&self, cache: &Grains, key: u8) -> Result<Pinned<Grain>, Error> {
        let answer = cache.get_or_build(&key, || self.build(key));
        check(&answer, key);
        answer
    }

    pub(crate) fn release(&self, grain: &Grain) {
        assert!(!grain.gone.swap(true, Ordering::Relaxed), "released twice");
        self.step();
        self.0.alive.fetch_sub(1, Ordering::Relaxed);
        self.0.released.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn alive(&self) -> usize {
        self.0.alive.load(Ordering::Relaxed)
    }

    /// The end of a model: the figures are right, everything can be released, and has been once.
    pub(crate) fn end(&self, cache: Grains) {
        let figures = cache.statistics();
        let live = figures.entries + figures.retired;
        assert_eq!((figures.building, live), (0, self.alive() as u64), "{figures:?}");
        assert_eq!(figures.built, figures.released + live, "{figures:?}");
        self.set_busy(false);
        drop(cache);
        assert_eq!(self.alive(), 0, "values that are never released");
        assert_eq!(self.0.made.load(Ordering::Relaxed), self.0.released.load(Ordering::Relaxed));
    }
}

/// What the answer pins, if anything, is the right value, and alive.
pub(crate) fn check(answer: &Result<Pinned<Grain>, Error>, key: u8) {
    match answer {
        Ok(pin) => look(pin, key),
        Err(Error::Busy { capacity, pinned, busy, building, retired }) => {
            assert_eq!(*capacity, pinned + busy + building + retired);
        }
        Err(_) => {}
    }
}

pub(crate) fn look(pin: &Pinned<Grain>, key: u8) {
    assert_eq!(pin.key, key);
    assert!(!pin.gone.load(Ordering::Relaxed), "released under a pin");
}

pub(crate) fn device() -> DeviceId {
    DeviceId::new(Family::CUDA, 0)
}
