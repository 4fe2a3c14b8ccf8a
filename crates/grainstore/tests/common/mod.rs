//! What the tests of the cache share: a value whose life is counted, and a gate to hold builds at.
#![allow(dead_code, unreachable_pub)]

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};

use grainstore::{Builder, Cache};

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
    busy: HashSet<u64>,
}

/// A value that its world knows about.
#[derive(Debug)]
pub struct Module {
    pub key: u64,
    serial: usize,
}

impl World {
    pub fn make(&self, key: u64) -> Module {
        let mut lives = self.0.lock().unwrap();
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

    pub fn release(&self, module: Module) {
        let mut lives = self.0.lock().unwrap();
        assert!(lives.alive.remove(&module.serial), "{module:?} was released twice");
        lives.released.push(module.key);
    }

    pub fn made(&self) -> usize {
        self.0.lock().unwrap().made
    }

    pub fn alive(&self) -> usize {
        self.0.lock().unwrap().alive.len()
    }

    pub fn most_alive(&self) -> usize {
        self.0.lock().unwrap().most_alive
    }

    /// Keys of released values, in the order of release.
    pub fn released(&self) -> Vec<u64> {
        self.0.lock().unwrap().released.clone()
    }

    pub fn set_busy(&self, key: u64, busy: bool) {
        let mut lives = self.0.lock().unwrap();
        if busy { lives.busy.insert(key) } else { lives.busy.remove(&key) };
    }

    pub fn is_idle(&self, module: &Module) -> bool {
        !self.0.lock().unwrap().busy.contains(&module.key)
    }

    /// A builder whose values tell this world of their release, and ask it whether they are idle.
    pub fn builder(&self) -> Builder<u64, Module> {
        let (idle, release) = (self.clone(), self.clone());
        Cache::<u64, Module>::builder()
            .idle(move |module| idle.is_idle(module))
            .release(move |module| release.release(module))
    }

    pub fn cache(&self, capacity: usize) -> Cache<u64, Module> {
        self.builder().capacity(capacity).build().unwrap()
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
