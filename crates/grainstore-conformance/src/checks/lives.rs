//! The ends of a device, and its beginnings.

use std::time::Duration;

use grainstore_runtime::{Device, RuntimeError};

use crate::Subject;
use crate::stage::{Stage, launch};
use crate::trouble::{Check, Trouble, ensure};

pub(super) fn made_again<S: Subject>(subject: &S) -> Check {
    let (stage, spec) = (Stage::new(subject)?, subject.kernel(17));
    let id = stage.device.id();
    let mut device = stage.device.clone();
    for life in 1..=3 {
        let place = format!("in life {life} of the device");
        // One kernel that an earlier life has left in the store, and one that no life has seen.
        let new = (100 + life, subject.kernel(100 + life));
        for (add, spec) in [(17, &spec), (new.0, &new.1)] {
            launch(subject, &*stage.cache.kernel(&device, spec)?, add)
                .map_err(|trouble| trouble.at(&place))?;
        }
        stage.cache.destroy_device(&device)?;
        refused(&stage, &device)?;
        let next = stage.cache.device(&id)?;
        ensure!(next != device, "a destroyed device has the handle it had");
        // Destroyed for good already: this must not reach the new life.
        stage.cache.destroy_device(&device)?;
        ensure!(next.is_live(), "destroying an earlier life again has ended the new one");
        refused(&stage, &device)?;
        device = next;
    }
    stage.finish()
}

pub(super) fn lost<S: Subject>(subject: &S) -> Check {
    let stage = Stage::new(subject)?;
    let spec = subject.kernel(18);
    stage.check(&subject.kernel(19), 19)?;
    let pinned = stage.kernel(&spec)?;
    launch(subject, &*pinned, 18)?;
    stage.cache.device_lost(&stage.device)?;
    refused(&stage, &stage.device)?;

    let device = stage.cache.device(&stage.device.id())?;
    let kernel = stage.cache.kernel(&device, &spec)?;
    launch(subject, &*kernel, 18).map_err(|trouble| trouble.at("after the device was lost"))?;
    drop(pinned);
    ensure!(
        stage.backend.unloads() == 0,
        "{} modules of a lost device were unloaded",
        stage.backend.unloads()
    );
    launch(subject, &*kernel, 18).map_err(|trouble| trouble.at("after the lost one's pin went"))?;
    drop(kernel);
    stage.cache.destroy_device(&device)?;
    Ok(stage.cache.shutdown()?)
}

pub(super) fn given_up<S: Subject>(subject: &S) -> Check {
    let stage = Stage::new(subject)?;
    let spec = subject.kernel(20);
    let pinned = stage.kernel(&spec)?;
    stage.cache.destroy_device_abandoning(&stage.device, Duration::ZERO)?;
    launch(subject, &*pinned, 20).map_err(|trouble| trouble.at("pinned, its device given up"))?;

    let device = stage.cache.device(&stage.device.id())?;
    launch(subject, &*stage.cache.kernel(&device, &spec)?, 20)
        .map_err(|trouble| trouble.at("after the device was given up"))?;
    stage.cache.destroy_device(&device)?;
    launch(subject, &*pinned, 20).map_err(|trouble| trouble.at("its device's next life over"))?;
    drop(pinned);
    Ok(stage.cache.shutdown()?)
}

pub(super) fn shutdown_twice<S: Subject>(subject: &S) -> Check {
    let stage = Stage::new(subject)?;
    let spec = subject.kernel(21);
    stage.check(&spec, 21)?;
    stage.cache.shutdown()?;
    stage.backend.end();
    stage.cache.shutdown().map_err(|error| Trouble::from(error).at("the second time"))?;
    for (call, outcome) in
        [("kernel", stage.kernel(&spec).map(drop)), ("devices", stage.cache.devices().map(drop))]
    {
        ensure!(
            matches!(outcome, Err(RuntimeError::ShutDown)),
            "{call} after a shutdown gave {outcome:?}"
        );
    }
    no_late_call(&stage)?;

    // And with a kernel that somebody does not let go of.
    let stage = Stage::new(subject)?;
    let pinned = stage.kernel(&spec)?;
    match stage.cache.shutdown_within(Duration::ZERO) {
        Err(RuntimeError::ShutdownIncomplete { pinned, .. })
            if pinned.iter().any(|kernel| kernel.contains(spec.name())) => {}
        other => {
            let message = format!("a shutdown with `{}` pinned gave {other:?}", spec.name());
            return Err(Trouble::Failed(message));
        }
    }
    stage.backend.end();
    launch(subject, &*pinned, 21).map_err(|trouble| trouble.at("pinned over a shutdown"))?;
    drop(pinned);
    no_late_call(&stage)
}

fn no_late_call<S: Subject>(stage: &Stage<'_, S>) -> Check {
    let late = stage.backend.late_calls();
    ensure!(late == 0, "the backend was called {late} times after the shutdown");
    Ok(())
}

/// A handle of an earlier life gets no kernel.
fn refused<S: Subject>(stage: &Stage<'_, S>, device: &Device) -> Check {
    match stage.cache.kernel(device, &stage.subject.kernel(17)) {
        Err(RuntimeError::DeviceDestroyed { .. }) => Ok(()),
        Err(error) => Err(Trouble::failed(format!(
            "a handle of an earlier life gave `{error}`, not DeviceDestroyed"
        ))),
        Ok(_) => Err(Trouble::failed("a handle of an earlier life got a kernel")),
    }
}
