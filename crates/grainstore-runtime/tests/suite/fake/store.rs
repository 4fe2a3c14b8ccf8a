//! A store in memory that fails, lies and counts as a test tells it to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grainstore::{Fingerprint, KernelKey};
use grainstore_runtime::{Artifact, BuildFacts, Guard, LookUp, Store, StoreError};

use super::lock;

/// Clones are the same store.
#[derive(Clone)]
pub struct FakeStore {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    /// Others share it: it discards nothing.
    shared: bool,
    /// It gives leases and watches loads, and notes their ends as calls.
    leasing: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: HashMap<Fingerprint, (Artifact, BuildFacts)>,
    mode: Mode,
    calls: Vec<&'static str>,
}

/// How it behaves.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Good,
    Failing,
    Panicking,
    /// What it has, it won't hand out.
    Withholding,
}

impl FakeStore {
    pub fn new(name: &str) -> Self {
        Self::of(name, false, false)
    }

    pub fn leasing(name: &str) -> Self {
        Self::of(name, false, true)
    }

    pub fn shared(name: &str) -> Self {
        Self::of(name, true, false)
    }

    fn of(name: &str, shared: bool, leasing: bool) -> Self {
        let (name, state) = (name.to_owned(), Mutex::default());
        Self { inner: Arc::new(Inner { name, shared, leasing, state }) }
    }

    pub fn set_mode(&self, mode: Mode) {
        lock(&self.inner.state).mode = mode;
    }

    pub fn has(&self, key: &KernelKey) -> bool {
        self.artifact(key).is_some()
    }

    pub fn artifact(&self, key: &KernelKey) -> Option<Artifact> {
        lock(&self.inner.state).kept.get(&key.fingerprint()).map(|(artifact, _)| artifact.clone())
    }

    pub fn facts(&self, key: &KernelKey) -> Option<BuildFacts> {
        lock(&self.inner.state).kept.get(&key.fingerprint()).map(|(_, facts)| facts.clone())
    }

    pub fn plant(&self, key: &KernelKey, artifact: Artifact) {
        let mut state = lock(&self.inner.state);
        state.kept.insert(key.fingerprint(), (artifact, BuildFacts::default()));
    }

    pub fn len(&self) -> usize {
        lock(&self.inner.state).kept.len()
    }

    /// The calls since the last time, in order.
    pub fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut lock(&self.inner.state).calls)
    }

    fn enter(&self, call: &'static str) -> Result<(), StoreError> {
        let mode = {
            let mut state = lock(&self.inner.state);
            state.calls.push(call);
            state.mode
        };
        match mode {
            Mode::Withholding if call == "get" => {
                Err(StoreError::new("there is something about it").withholding())
            }
            Mode::Good | Mode::Withholding => Ok(()),
            Mode::Failing => Err(StoreError::new(format!("{} is broken", self.inner.name))),
            Mode::Panicking => panic!("the store lost its head"),
        }
    }
}

struct NotesItsEnd(FakeStore, &'static str);

impl Drop for NotesItsEnd {
    fn drop(&mut self) {
        lock(&self.0.inner.state).calls.push(self.1);
    }
}

impl Store for FakeStore {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn get(&self, key: &KernelKey) -> Result<Option<Artifact>, StoreError> {
        self.enter("get")?;
        Ok(self.artifact(key))
    }

    fn get_or_lease(&self, key: &KernelKey, _: Duration) -> Result<LookUp, StoreError> {
        Ok(match self.get(key)? {
            Some(artifact) => LookUp::Found(artifact),
            None if self.inner.leasing => {
                LookUp::Missing(Some(Guard::new(NotesItsEnd(self.clone(), "release"))))
            }
            None => LookUp::Missing(None),
        })
    }

    fn loading(&self, _: &KernelKey) -> Option<Guard> {
        self.inner.leasing.then(|| {
            lock(&self.inner.state).calls.push("loading");
            Guard::new(NotesItsEnd(self.clone(), "loaded"))
        })
    }

    fn put(
        &self,
        key: &KernelKey,
        artifact: &Artifact,
        facts: &BuildFacts,
    ) -> Result<(), StoreError> {
        self.enter("put")?;
        let kept = (artifact.clone(), facts.clone());
        lock(&self.inner.state).kept.insert(key.fingerprint(), kept);
        Ok(())
    }

    fn discard(&self, key: &KernelKey) -> Result<(), StoreError> {
        self.enter("discard")?;
        if !self.inner.shared {
            lock(&self.inner.state).kept.remove(&key.fingerprint());
        }
        Ok(())
    }
}
