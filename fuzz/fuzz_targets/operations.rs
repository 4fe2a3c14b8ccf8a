//! Calls in any order on a small cache, from one thread: the books balance after each.
#![no_main]

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arbitrary::Arbitrary;
use grainstore::{Cache, DeviceId, Drain, Error, Family, Ownership, Pinned};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    capacity: Option<u8>,
    max_weight: Option<u8>,
    borrows: bool,
    calls: Vec<Call>,
}

#[derive(Arbitrary, Debug)]
enum Call {
    Ask { key: u8, device: bool, keep: bool, fails: bool },
    Get { key: u8, device: bool, keep: bool },
    Clone { pin: u8 },
    Unpin { pin: u8 },
    Remove { key: u8, device: bool, keep: bool },
    Evict { keep: bool },
    Clear { keep: bool },
    Busy { key: u8, busy: bool },
    Wait { drain: u8 },
    Abandon { drain: u8 },
    Reap,
}

/// Serial numbers of the living, by key, and who is busy.
#[derive(Default)]
struct Lives {
    alive: HashMap<u64, u8>,
    busy: [bool; 8],
    made: u64,
}

struct Value {
    serial: u64,
    key: u8,
    lives: Arc<Mutex<Lives>>,
}

impl Value {
    fn is_alive(&self) -> bool {
        self.lives.lock().unwrap().alive.contains_key(&self.serial)
    }
}

fuzz_target!(|input: Input| {
    let lives: Arc<Mutex<Lives>> = Arc::default();
    let device = DeviceId::new(Family::HOST, 7);
    let capacity = input.capacity.map(|capacity| usize::from(capacity % 4) + 1);
    let mut builder = Cache::<u8, Value>::builder()
        .idle(|value| {
            assert!(value.is_alive(), "asked after its release");
            !value.lives.lock().unwrap().busy[usize::from(value.key)]
        })
        .release(|value: Value| {
            let known = value.lives.lock().unwrap().alive.remove(&value.serial);
            assert!(known.is_some(), "released twice");
        });
    if let Some(capacity) = capacity {
        builder = builder.capacity(capacity);
    }
    if let Some(weight) = input.max_weight {
        builder = builder.weigher(|key, _| u64::from(*key)).max_weight(1 + u64::from(weight % 16));
    }
    if input.borrows {
        builder = builder.ownership(Ownership::Borrows);
    }
    let cache = builder.build().unwrap();
    let mut pins: Vec<Pinned<Value>> = Vec::new();
    let mut drains: Vec<Drain<u8>> = Vec::new();
    let abandoned = Cell::new(0);
    for call in input.calls {
        match call {
            Call::Ask { key, device: on, keep, fails } => {
                let key = key % 8;
                let build = || {
                    if fails {
                        return Err("on purpose");
                    }
                    let mut known = lives.lock().unwrap();
                    known.made += 1;
                    let serial = known.made;
                    known.alive.insert(serial, key);
                    Ok(Value { serial, key, lives: lives.clone() })
                };
                let answer = if on {
                    cache.on(&device).get_or_build(&key, build)
                } else {
                    cache.get_or_build(&key, build)
                };
                match answer {
                    Ok(pin) => {
                        assert!(pin.key == key && pin.is_alive());
                        pins.extend(keep.then_some(pin));
                    }
                    Err(Error::Busy { capacity, pinned, busy, building, retired }) => {
                        assert_eq!(capacity, pinned + busy + building + retired);
                    }
                    Err(error) => assert!(fails, "{error}"),
                }
            }
            Call::Get { key, device: on, keep } => {
                let key = key % 8;
                let found = if on { cache.on(&device).get(&key) } else { cache.get(&key) };
                if let Some(pin) = found {
                    assert!(pin.key == key && pin.is_alive());
                    pins.extend(keep.then_some(pin));
                }
            }
            Call::Clone { pin } => {
                let clone = pins.get(usize::from(pin)).cloned();
                pins.extend(clone);
            }
            Call::Unpin { pin } if usize::from(pin) < pins.len() => {
                drop(pins.swap_remove(usize::from(pin)));
            }
            Call::Remove { key, device: on, keep } => {
                let key = key % 8;
                let drain = if on { cache.on(&device).remove(&key) } else { cache.remove(&key) };
                drains.extend(keep.then_some(drain));
                let left = if on { cache.on(&device).get(&key) } else { cache.get(&key) };
                assert!(left.is_none());
            }
            Call::Evict { keep } => {
                drains.extend(Some(cache.evict_device(&device)).filter(|_| keep))
            }
            Call::Clear { keep } => {
                drains.extend(Some(cache.clear()).filter(|_| keep));
                assert_eq!(cache.len(), 0);
            }
            Call::Busy { key, busy } => lives.lock().unwrap().busy[usize::from(key % 8)] = busy,
            Call::Wait { drain } => {
                if let Some(drain) = drains.get(usize::from(drain)) {
                    let done = drain.wait_timeout(std::time::Duration::ZERO);
                    assert_eq!(done, drain.pending() == 0);
                }
            }
            Call::Abandon { drain } if usize::from(drain) < drains.len() => {
                let gone = drains.swap_remove(usize::from(drain)).abandon();
                abandoned.set(abandoned.get() + gone);
            }
            Call::Reap => {
                let _ = cache.reap();
            }
            Call::Unpin { .. } | Call::Abandon { .. } => {}
        }
        let figures = cache.statistics();
        let live = figures.entries + figures.retired;
        assert_eq!(figures.building, 0);
        assert_eq!(figures.abandoned, abandoned.get() as u64);
        assert_eq!(figures.built, figures.released + figures.abandoned + live, "{figures:?}");
        assert!(capacity.is_none_or(|capacity| live <= capacity as u64), "{figures:?}");
        let known = lives.lock().unwrap().alive.len() as u64;
        assert_eq!(known, live + figures.abandoned, "{figures:?}");
        assert!(pins.iter().all(|pin| pin.is_alive()), "released under a pin");
    }
    drop(pins);
    lives.lock().unwrap().busy = [false; 8];
    assert!(cache.clear().wait().is_ok());
    cache.reap();
    assert_eq!(lives.lock().unwrap().alive.len(), abandoned.get());
});
