//! The threads that tear down what the others launch.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use grainstore::{DeviceId, Drain, ReleaseError};
use grainstore_runtime::RuntimeError;

use super::ground::{Ground, KERNELS};
use super::random::Random;
use crate::Subject;
use crate::gate::BOUND;
use crate::trouble::{Check, Trouble, ensure};

/// At most so many launches between two teardowns of a thread.
const BETWEEN: usize = 24;
/// How long a teardown waits for pins, at most, before it leaves the rest for later.
const PATIENCE: usize = 20;

/// Tears down until the round is over.
pub(super) fn run<S: Subject>(ground: &Ground<S>, mut random: Random) {
    loop {
        let done = match ground.launched.more(1 + random.below(BETWEEN)) {
            Ok(true) => tear_down(ground, &mut random),
            Ok(false) => return,
            // Nobody launches any more, and nobody has said that the round is over.
            Err(trouble) => return ground.fault(trouble.into_text()),
        };
        match done {
            Ok(Some(deferred)) => {
                ground.deferred.fetch_add(deferred as u64, Ordering::Relaxed);
                ground.teardowns.fetch_add(1, Ordering::Relaxed);
            }
            Ok(None) => {}
            Err(trouble) => ground.fault(trouble.into_text()),
        }
    }
}

/// What became of a teardown: how many releases it had to leave for later. None where there was
/// nothing to tear down, since others did that just now.
type Done = Check<Option<usize>>;

fn tear_down<S: Subject>(ground: &Ground<S>, random: &mut Random) -> Done {
    let device = ground.any_device(random);
    let number = random.below(KERNELS as usize) as u32;
    let patience = Duration::from_millis(1 + random.below(PATIENCE) as u64);
    match random.below(20) {
        0..=3 => clear(ground, patience),
        4..=6 => remove(ground, &device, number, patience),
        7..=8 => settled(&ground.plans.clear(), patience),
        9..=10 => settled(&ground.plans.on(&device).remove(&number), patience),
        11..=12 => evict(ground, &device),
        13..=14 => Ok(live(ground.runtime.reset_devices())?.map(|()| 0)),
        15 => {
            // The next builds compile.
            ground.store.forget_all();
            clear(ground, patience)
        }
        _ => destroy(ground, &device, patience),
    }
}

fn clear<S: Subject>(ground: &Ground<S>, patience: Duration) -> Done {
    let Some(drains) = live(ground.runtime.clear())? else { return Ok(None) };
    let deferred = drains.pending();
    let _ = drains.wait_timeout(patience);
    released(drains.errors().first())?;
    Ok(Some(deferred))
}

fn remove<S: Subject>(
    ground: &Ground<S>,
    device: &DeviceId,
    number: u32,
    patience: Duration,
) -> Done {
    let Some(handle) = live(ground.runtime.device(device))? else { return Ok(None) };
    match live(ground.runtime.remove(&handle, ground.spec(number)))? {
        Some(drain) => settled(&drain, patience),
        None => Ok(None),
    }
}

/// Somebody else says that the device is gone; the runtime hears of it by the hooks.
fn evict<S: Subject>(ground: &Ground<S>, device: &DeviceId) -> Done {
    ground.runtime.hooks().notify_device_destroy(device)?;
    Ok(Some(0))
}

/// Destroys a device for good, however often that has to be tried.
fn destroy<S: Subject>(ground: &Ground<S>, device: &DeviceId, patience: Duration) -> Done {
    let Some(handle) = live(ground.runtime.device(device))? else { return Ok(None) };
    let began = Instant::now();
    let mut deferred = 0;
    loop {
        match ground.runtime.destroy_device_within(&handle, patience) {
            Ok(()) | Err(RuntimeError::ShutDown) => return Ok(Some(deferred)),
            Err(RuntimeError::DeviceHeld { kernels, .. }) => deferred = deferred.max(kernels.len()),
            Err(RuntimeError::TeardownRunning { .. }) => {}
            // Another thread has reset the handles since: this one has nothing to destroy.
            Err(RuntimeError::DeviceDestroyed { .. }) => return Ok(None),
            Err(error) => return Err(Trouble::from(error).at("a device was not destroyed")),
        }
        ensure!(began.elapsed() < BOUND, "a device is still held after {BOUND:?}");
    }
}

/// Waits for a while, and says how many releases were not done at once.
fn settled<K>(drain: &Drain<K>, patience: Duration) -> Done {
    let deferred = drain.pending();
    let _ = drain.wait_timeout(patience);
    released(drain.errors().first())?;
    Ok(Some(deferred))
}

fn released(error: Option<&ReleaseError>) -> Check {
    match error {
        Some(error) => Err(Trouble::failed(format!("a release failed: {error}"))),
        None => Ok(()),
    }
}

/// None where another thread's teardown has the device just now, or the runtime is shut down.
fn live<T>(result: Result<T, RuntimeError>) -> Check<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(
            RuntimeError::ShutDown
            | RuntimeError::DeviceDestroyed { .. }
            | RuntimeError::DeviceHeld { .. }
            | RuntimeError::TeardownRunning { .. },
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
