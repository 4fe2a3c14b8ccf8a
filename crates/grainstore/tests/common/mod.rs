//! What the tests of the cache share: a value whose life is counted, and a gate to hold builds at.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use grainstore::{Builder, Cache, Error};

pub type Failure = std::io::Error;

pub fn failure(text: &str) -> Failure {
    std::io::Error::other(text.to_owned())
}

/// Every value made, and what became of it.
#[derive(Clone, Default)]
pub struct World(Arc<Mutex<Lives>>);

#[derive(Default)]
struct Lives {
    made: usize,
    alive: HashSet<usize>,
    most_alive: usize,
    released: Vec<u64>,
    /// Serial numbers of released values.
    serials: Vec<usize>,
    busy: HashSet<u64>,
    /// Keys whose release fails.
    stuck: HashSet<u64>,
    /// Keys of the values that `idle` was asked about, in order.
    asked: Vec<u64>,
    /// What must never happen. Kept, since a panic in a callback is contained by the cache.
    faults: Vec<String>,
}

/// A value that its world knows about.
#[derive(Debug)]
pub struct Module {
    pub key: u64,
    pub serial: usize,
}

impl World {
    fn lives(&self) -> MutexGuard<'_, Lives> {
        let lives = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(lives.faults.is_empty() || thread::panicking(), "{:?}", lives.faults);
        lives
    }

    pub fn make(&self, key: u64) -> Module {
        let mut lives = self.lives();
        lives.made += 1;
        let serial = lives.made;
        lives.alive.insert(serial);
        lives.most_alive = lives.most_alive.max(lives.alive.len());
        Module { key, serial }
    }

    /// What a build closure returns.
    pub fn build(&self, key: u64) -> Result<Module, Failure> {
        Ok(self.make(key))
    }

    #[allow(clippy::needless_pass_by_value, reason = "it ends here")]
    pub fn release(&self, module: Module) {
        let mut lives = self.lives();
        if !lives.alive.remove(&module.serial) {
            lives.faults.push(format!("{module:?} was released twice"));
        }
        lives.released.push(module.key);
        lives.serials.push(module.serial);
    }

    /// Has the release of this key's values fail, with the key as the error's text.
    pub fn fail_release(&self, key: u64) {
        self.lives().stuck.insert(key);
    }

    /// A fault, for code whose panics are contained.
    pub fn fault(&self, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).faults.push(what.into());
    }

    pub fn made(&self) -> usize {
        self.lives().made
    }

    pub fn alive(&self) -> usize {
        self.lives().alive.len()
    }

    pub fn most_alive(&self) -> usize {
        self.lives().most_alive
    }

    /// Keys of released values, in the order of release.
    pub fn released(&self) -> Vec<u64> {
        self.lives().released.clone()
    }

    /// Serial numbers of what was released since this was last called, in the order of release.
    pub fn take_released(&self) -> Vec<usize> {
        std::mem::take(&mut self.lives().serials)
    }

    pub fn set_busy(&self, key: u64, busy: bool) {
        let mut lives = self.lives();
        if busy {
            lives.busy.insert(key)
        } else {
            lives.busy.remove(&key)
        };
    }

    pub fn is_idle(&self, module: &Module) -> bool {
        let mut lives = self.lives();
        if !lives.alive.contains(&module.serial) {
            lives.faults.push(format!("asked about {module:?}, which is not alive"));
        }
        lives.asked.push(module.key);
        !lives.busy.contains(&module.key)
    }

    /// The keys that `idle` was asked about since this was last called, in order.
    pub fn take_asked(&self) -> Vec<u64> {
        std::mem::take(&mut self.lives().asked)
    }

    /// A builder whose values tell this world of their release, and ask it whether they are idle.
    pub fn builder(&self) -> Builder<u64, Module> {
        let (idle, release) = (self.clone(), self.clone());
        Cache::<u64, Module>::builder().idle(move |module| idle.is_idle(module)).release(
            move |module| {
                let key = module.key;
                release.release(module);
                if release.lives().stuck.contains(&key) {
                    return Err(failure(&key.to_string()));
                }
                Ok(())
            },
        )
    }

    pub fn cache(&self, capacity: usize) -> Cache<u64, Module> {
        self.builder().capacity(capacity).build().unwrap()
    }

    /// Builds these keys, one after the other, and keeps no pin.
    pub fn fill(&self, cache: &Cache<u64, Module>, keys: impl IntoIterator<Item = u64>) {
        for key in keys {
            cache.get_or_build(&key, || self.build(key)).unwrap();
        }
    }
}

/// Closed at first; threads wait at it until it is opened.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<(bool, usize)>, Condvar)>);

impl Gate {
    pub fn pass(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.1 += 1;
        self.0.1.notify_all();
        while !state.0 {
            state = self.0.1.wait(state).unwrap();
        }
    }

    pub fn open(&self) {
        self.0.0.lock().unwrap().0 = true;
        self.0.1.notify_all();
    }

    /// Blocks until so many threads have come to the gate.
    pub fn await_arrivals(&self, count: usize) {
        let mut state = self.0.0.lock().unwrap();
        while state.1 < count {
            state = self.0.1.wait(state).unwrap();
        }
    }
}

/// Runs a future on this thread, sleeping between polls.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Checks the sums that hold for any cache at rest.
pub fn check<K, V>(cache: &Cache<K, V>)
where
    K: std::hash::Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    let figures = cache.statistics();
    let live = cache.len() as u64 + figures.retired;
    assert_eq!(figures.built, figures.released + figures.abandoned + live, "{figures:?}");
    assert_eq!(figures.entries, cache.len() as u64 + figures.building, "{figures:?}");
}

/// The parts of a `Busy`: pinned, busy, building, retired.
pub fn parts(error: &Error) -> [usize; 4] {
    let Error::Busy { capacity, pinned, busy, building, retired } = *error else {
        panic!("{error:?} is not Busy")
    };
    assert_eq!(capacity, pinned + busy + building + retired, "{error:?}");
    [pinned, busy, building, retired]
}

/// An `idle` that can be held in the middle of its answer.
pub fn held_idle(capacity: usize) -> (World, Gate, Cache<u64, Module>) {
    let (world, gate) = (World::default(), Gate::default());
    let cache = {
        let (idle, release, gate) = (world.clone(), world.clone(), gate.clone());
        Cache::<u64, Module>::builder()
            .capacity(capacity)
            .idle(move |module| {
                gate.pass();
                idle.is_idle(module)
            })
            .release(move |module| release.release(module))
            .build()
            .unwrap()
    };
    (world, gate, cache)
}

/// A small random generator (xorshift64*), so that a run can be repeated from its seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Never zero, and close seeds far apart.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }

    pub fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}
