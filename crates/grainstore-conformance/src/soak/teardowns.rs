//! The threads that tear down what the others launch.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use grainstore::Drain;
use grainstore_runtime::RuntimeError;

use super::ground::{Ground, KERNELS};
use super::plans;
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
        match ground.launched.more(1 + random.below(BETWEEN)) {
            Ok(true) => {}
            Ok(false) => return,
            Err(Trouble::Failed(what) | Trouble::Absent(what) | Trouble::Cannot(what)) => {
                return ground.fault(what);
            }
        }
        match tear_down(ground, &mut random) {
            Ok(deferred) => {
                ground.deferred.fetch_add(deferred as u64, Ordering::Relaxed);
                ground.teardowns.fetch_add(1, Ordering::Relaxed);
            }
            Err(Trouble::Failed(what) | Trouble::Absent(what) | Trouble::Cannot(what)) => {
                ground.fault(what);
            }
        }
    }
}

/// One teardown, and how many releases it had to leave for later.
fn tear_down<S: Subject>(ground: &Ground<S>, random: &mut Random) -> Check<usize> {
    let device = ground.any_device(random);
    let number = random.below(KERNELS as usize) as u32;
    let patience = Duration::from_millis(1 + random.below(PATIENCE) as u64);
    let runtime = &ground.runtime;
    match random.below(20) {
        0..=3 => {
            let drains = or_over(runtime.clear())?;
            let Some(drains) = drains else { return Ok(0) };
            let deferred = drains.pending();
            let _ = drains.wait_timeout(patience);
            released(drains.errors().first())?;
            Ok(deferred)
        }
        4..=6 => {
            let Some(handle) = or_over(optional(runtime.device(&device)))?.flatten() else {
                return Ok(0);
            };
            let removed = optional(runtime.remove(&handle, ground.spec(number)));
            let Some(drain) = or_over(removed)?.flatten() else { return Ok(0) };
            settled(&drain, patience)
        }
        7..=8 => settled(&ground.plans.clear(), patience),
        9..=10 => Ok(plans::remove(ground, &device, number)),
        // Somebody else's word that the device is gone: the runtime hears of it by the hooks.
        11..=12 => {
            runtime.hooks().notify_device_destroy(&device)?;
            Ok(0)
        }
        13..=14 => {
            or_over(runtime.reset_devices())?;
            Ok(0)
        }
        15 => {
            // No teardown of a device, but the next builds compile.
            ground.store.forget_all();
            or_over(runtime.clear())?.map_or(Ok(0), |drains| Ok(drains.pending()))
        }
        _ => destroy(ground, &device, patience),
    }
}

/// Destroys a device for good, however often that has to be tried.
fn destroy<S: Subject>(
    ground: &Ground<S>,
    device: &grainstore::DeviceId,
    patience: Duration,
) -> Check<usize> {
    let Some(handle) = or_over(optional(ground.runtime.device(device)))?.flatten() else {
        return Ok(0);
    };
    let began = Instant::now();
    let mut deferred = 0;
    loop {
        match ground.runtime.destroy_device_within(&handle, patience) {
            Ok(()) | Err(RuntimeError::ShutDown) => return Ok(deferred),
            Err(RuntimeError::DeviceHeld { kernels, .. }) => deferred = deferred.max(kernels.len()),
            Err(RuntimeError::TeardownRunning { .. }) => {}
            Err(error) => return Err(Trouble::from(error).at("a device was not destroyed")),
        }
        ensure!(began.elapsed() < BOUND, "a device is still held after {BOUND:?}");
    }
}

/// Waits for a while, and says how many releases were not done at once.
fn settled<K>(drain: &Drain<K>, patience: Duration) -> Check<usize> {
    let deferred = drain.pending();
    let _ = drain.wait_timeout(patience);
    released(drain.errors().first())?;
    Ok(deferred)
}

fn released(error: Option<&grainstore::ReleaseError>) -> Check {
    match error {
        Some(error) => Err(Trouble::failed(format!("a release failed: {error}"))),
        None => Ok(()),
    }
}

/// None where a teardown of another thread has the device, or ends the kernel's life just now.
fn optional<T>(result: Result<T, RuntimeError>) -> Result<Option<T>, RuntimeError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(
            RuntimeError::DeviceDestroyed { .. }
            | RuntimeError::DeviceHeld { .. }
            | RuntimeError::TeardownRunning { .. },
        ) => Ok(None),
        Err(error) => Err(error),
    }
}

/// None where the runtime was shut down meanwhile.
fn or_over<T>(result: Result<T, RuntimeError>) -> Check<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(RuntimeError::ShutDown) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
