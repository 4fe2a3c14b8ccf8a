//! Launches that go on while the ground is taken away.
//!
//! Four threads ask for a kernel, launch it and check its numbers, again and again. Meanwhile it is
//! cleared, removed, its device evicted, destroyed. Then the same with a pin in hand, step by step.

use std::thread;
use std::time::Duration;

use grainstore::Pinned;
use grainstore_runtime::{KernelSpec, RuntimeError};

use super::threads::joined;
use crate::Subject;
use crate::gate::{BOUND, Meter};
use crate::stage::{Module, Stage, launch};
use crate::trouble::{Check, Trouble, ensure};

const THREADS: usize = 4;
const ROUNDS: usize = 8;
const ADD: u32 = 13;

pub(super) fn while_cleared<S: Subject>(subject: &S) -> Check {
    let (stage, spec) = (Stage::new(subject)?, subject.kernel(ADD));
    under_launches(&stage, &spec, || {
        drop(stage.cache.clear()?);
        Ok(())
    })?;

    let pinned = stage.kernel(&spec)?;
    let drain = stage.cache.clear()?;
    ensure!(
        drain.pending() == 1,
        "of a pinned kernel {} are pending after a clear",
        drain.pending()
    );
    launch(subject, &*pinned, ADD).map_err(|trouble| trouble.at("pinned, and cleared"))?;
    replaced(&stage, &spec, pinned)?;
    ensure!(drain.wait_timeout(BOUND), "a kernel was not released with its last pin");
    stage.clear()?;
    nothing_is_loaded(&stage)?;
    stage.finish()
}

pub(super) fn while_removed<S: Subject>(subject: &S) -> Check {
    let (stage, spec) = (Stage::new(subject)?, subject.kernel(ADD));
    under_launches(&stage, &spec, || {
        drop(stage.cache.remove(&stage.device, &spec)?);
        Ok(())
    })?;

    stage.clear()?;
    let (pinned, other) = (stage.kernel(&spec)?, subject.kernel(ADD + 1));
    stage.check(&other, ADD + 1)?;
    let drain = stage.cache.remove(&stage.device, &spec)?;
    launch(subject, &*pinned, ADD).map_err(|trouble| trouble.at("pinned, and removed"))?;
    ensure!(drain.pending() == 1, "of a pinned kernel {} are pending", drain.pending());
    replaced(&stage, &spec, pinned)?;
    ensure!(drain.wait_timeout(BOUND), "a kernel was not released with its last pin");
    stage.check(&other, ADD + 1).map_err(|trouble| trouble.at("after another one was removed"))?;
    stage.finish()
}

pub(super) fn while_evicted<S: Subject>(subject: &S) -> Check {
    let (stage, spec) = (Stage::new(subject)?, subject.kernel(ADD));
    // Somebody else says that the device goes; its kernels go, and the next handle ends its life.
    let evict = || Ok(stage.cache.hooks().notify_device_destroy(&stage.device.id())?);
    under_launches(&stage, &spec, evict)?;

    let device = stage.cache.device(&stage.device.id())?;
    let pinned = stage.cache.kernel(&device, &spec)?;
    evict()?;
    launch(subject, &*pinned, ADD)
        .map_err(|trouble| trouble.at("pinned, and its device evicted"))?;
    match stage.cache.device(&device.id()) {
        Err(RuntimeError::DeviceHeld { kernels, .. }) => names(&kernels, &spec)?,
        other => return Err(unexpected("a new handle of a device with a pinned kernel", &other)),
    }
    drop(pinned);
    let device = stage.cache.device(&device.id())?;
    nothing_is_loaded(&stage)?;
    launch(subject, &*stage.cache.kernel(&device, &spec)?, ADD)?;
    stage.finish()
}

pub(super) fn while_destroyed<S: Subject>(subject: &S) -> Check {
    let (stage, spec) = (Stage::new(subject)?, subject.kernel(ADD));
    let id = stage.device.id();
    under_launches(&stage, &spec, || {
        match stage.cache.device(&id).and_then(|device| stage.cache.destroy_device(&device)) {
            Ok(()) => Ok(()),
            Err(error) if is_passing(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    })?;

    let device = stage.cache.device(&id)?;
    let pinned = stage.cache.kernel(&device, &spec)?;
    match stage.cache.destroy_device_within(&device, Duration::ZERO) {
        Err(RuntimeError::DeviceHeld { kernels, .. }) => names(&kernels, &spec)?,
        other => {
            return Err(unexpected("the destruction of a device with a pinned kernel", &other));
        }
    }
    launch(subject, &*pinned, ADD).map_err(|trouble| trouble.at("pinned, its device leaving"))?;
    drop(pinned);
    stage.cache.destroy_device(&device)?;
    nothing_is_loaded(&stage)?;
    stage.finish()
}

/// A pinned module and the one that has come after it are both good, and the new one stays good when
/// the old one goes.
fn replaced<S: Subject>(stage: &Stage<'_, S>, spec: &KernelSpec, old: Module<S>) -> Check {
    let new = stage.kernel(spec)?;
    ensure!(!Pinned::ptr_eq(&new, &old), "a request has found a kernel that was taken out");
    launch(stage.subject, &*new, ADD).map_err(|trouble| trouble.at("beside the old module"))?;
    launch(stage.subject, &*old, ADD).map_err(|trouble| trouble.at("beside the new module"))?;
    drop(old);
    launch(stage.subject, &*new, ADD).map_err(|trouble| trouble.at("after the old module went"))
}

/// Takes the ground away again and again, each time after every thread may have launched.
fn under_launches<S: Subject>(
    stage: &Stage<'_, S>,
    spec: &KernelSpec,
    disturb: impl Fn() -> Check,
) -> Check {
    let meter = Meter::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let outcome = go_on(stage, spec, &meter);
                    // Who fails ends it for all.
                    meter.end();
                    outcome
                })
            })
            .collect();
        let mut disturbed = Ok(());
        for _ in 0..ROUNDS {
            match meter.more(THREADS) {
                Ok(true) => disturbed = disturb(),
                Ok(false) => break,
                Err(trouble) => disturbed = Err(trouble),
            }
            if disturbed.is_err() {
                break;
            }
        }
        meter.end();
        threads.into_iter().map(joined).fold(disturbed, Check::and)
    })
}

/// Asks, launches and checks until it is over, with a new handle whenever the old one is good no
/// more.
fn go_on<S: Subject>(stage: &Stage<'_, S>, spec: &KernelSpec, meter: &Meter) -> Check {
    let id = stage.device.id();
    let mut device = stage.device.clone();
    while !meter.is_over() {
        match stage.cache.kernel(&device, spec) {
            Ok(kernel) => {
                launch(stage.subject, &*kernel, ADD)?;
                meter.tick();
            }
            Err(error) if is_passing(&error) => match stage.cache.device(&id) {
                Ok(new) => device = new,
                Err(error) if is_passing(&error) => thread::yield_now(),
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What a caller hears in the middle of somebody else's teardown, and what asking again is for.
fn is_passing(error: &RuntimeError) -> bool {
    match error {
        RuntimeError::DeviceDestroyed { .. }
        | RuntimeError::DeviceHeld { .. }
        | RuntimeError::TeardownRunning { .. } => true,
        RuntimeError::Cache(error) => matches!(error, grainstore::Error::Removed),
        _ => false,
    }
}

fn names(kernels: &[String], spec: &KernelSpec) -> Check {
    ensure!(
        kernels.iter().any(|kernel| kernel == spec.name()),
        "the pinned kernel `{}` is not named among {kernels:?}",
        spec.name()
    );
    Ok(())
}

fn unexpected<T>(what: &str, outcome: &Result<T, RuntimeError>) -> Trouble {
    Trouble::failed(match outcome {
        Ok(_) => format!("{what} succeeded"),
        Err(error) => format!("{what} gave `{error}`, not DeviceHeld"),
    })
}

fn nothing_is_loaded<S: Subject>(stage: &Stage<'_, S>) -> Check {
    let modules = stage.backend.modules();
    ensure!(modules == 0, "{modules} modules are loaded that should have been released");
    Ok(())
}
