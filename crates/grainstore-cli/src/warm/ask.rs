//! What is here: the devices of every backend that some kernel wants.

use std::thread;

use grainstore_runtime::{Device, Runtime, RuntimeError};

use super::plan::{Asked, wants};
use crate::manifest::{KnownBackend, Manifest};

/// Asks the backends that some kernel wants for their devices, all at once: a driver may take its
/// time to start.
pub(super) fn ask(
    runtime: &Runtime,
    manifest: &Manifest,
    chosen: Vec<&KnownBackend>,
) -> Vec<Asked> {
    let wanted = chosen
        .into_iter()
        .filter(|backend| manifest.kernels.iter().any(|kernel| wants(kernel, backend)));
    thread::scope(|scope| {
        let asked: Vec<_> = wanted
            .map(|backend| (backend, scope.spawn(|| devices(runtime, &backend.name))))
            .collect();
        asked
            .into_iter()
            .map(|(backend, devices)| Asked {
                backend: backend.clone(),
                devices: devices.join().unwrap_or_else(|_| Err("its driver panicked".into())),
            })
            .collect()
    })
}

/// The devices of a backend, if it has any and a compiler for each.
fn devices(runtime: &Runtime, name: &str) -> Result<Vec<Device>, String> {
    let Some(cache) = runtime.backends().iter().find(|cache| cache.name() == name) else {
        return Err("this program was built without it".into());
    };
    let devices = cache.devices().map_err(|error| bare(&error))?;
    if devices.is_empty() {
        return Err("it has no device".into());
    }
    for device in &devices {
        cache.toolchain(device).map_err(|error| bare(&error))?;
    }
    Ok(devices)
}

/// The backend's own words, where there are such: which backend and kernel, the caller says.
pub(super) fn bare(error: &RuntimeError) -> String {
    error.backend_error().map_or_else(|| error.to_string(), ToString::to_string)
}
