//! Where kernels can go: the devices that are here, or the targets that were named.

use std::thread;

use grainstore_runtime::{AnyBackend, BackendCache, Runtime, RuntimeError, Target};

use super::plan::{Asked, Place, wants};
use crate::manifest::{KnownBackend, Manifest};

/// Asks the backends that some kernel wants for their devices, all at once: a driver may take its
/// time to start.
pub(super) fn ask(
    runtime: &Runtime,
    manifest: &Manifest,
    chosen: Vec<&KnownBackend>,
) -> Vec<Asked> {
    let wanted = wanted(manifest, chosen);
    thread::scope(|scope| {
        let asked: Vec<_> = wanted
            .map(|backend| (backend, scope.spawn(|| devices(runtime, &backend.name))))
            .collect();
        asked
            .into_iter()
            .map(|(backend, devices)| Asked {
                backend: backend.clone(),
                places: devices.join().unwrap_or_else(|_| Err("its driver panicked".into())),
            })
            .collect()
    })
}

/// Asks the backends that some kernel wants which of these targets they compile for.
///
/// # Errors
/// A target that none compiles for, and what each said.
pub(super) fn ask_for(
    runtime: &Runtime,
    manifest: &Manifest,
    chosen: Vec<&KnownBackend>,
    targets: &[String],
) -> Result<Vec<Asked>, String> {
    let mut asked: Vec<_> =
        wanted(manifest, chosen).map(|backend| (backend.clone(), Vec::new())).collect();
    for text in targets {
        let target = Target::new(text);
        let mut refusals = String::new();
        let mut taken = false;
        for (backend, places) in &mut asked {
            match find(runtime, &backend.name).and_then(|cache| at(cache, &target)) {
                Ok(place) => {
                    places.push(place);
                    taken = true;
                }
                Err(reason) => refusals.push_str(&format!("\n  {}: {reason}", backend.name)),
            }
        }
        if !taken {
            return Err(format!("no backend compiles these kernels for `{text}`{refusals}"));
        }
    }
    // Who takes none of them was not meant.
    asked.retain(|(_, places)| !places.is_empty());
    Ok(asked.into_iter().map(|(backend, places)| Asked { backend, places: Ok(places) }).collect())
}

fn wanted<'k>(
    manifest: &Manifest,
    chosen: Vec<&'k KnownBackend>,
) -> impl Iterator<Item = &'k KnownBackend> {
    let wants_it =
        |backend: &&KnownBackend| manifest.kernels.iter().any(|kernel| wants(kernel, backend));
    chosen.into_iter().filter(wants_it)
}

fn find<'r>(runtime: &'r Runtime, name: &str) -> Result<&'r BackendCache<AnyBackend>, String> {
    let known = runtime.backends().iter().find(|cache| cache.name() == name);
    known.ok_or_else(|| "this program was built without it".into())
}

/// A target of this backend, if it has a compiler for it.
fn at(cache: &BackendCache<AnyBackend>, target: &Target) -> Result<Place, String> {
    match cache.toolchain_for(target) {
        Ok(_) => Ok(Place::Target(cache.clone(), target.clone())),
        Err(error) => Err(bare(&error)),
    }
}

/// The devices of a backend, if it has any and a compiler for each.
fn devices(runtime: &Runtime, name: &str) -> Result<Vec<Place>, String> {
    let cache = find(runtime, name)?;
    let devices = cache.devices().map_err(|error| bare(&error))?;
    if devices.is_empty() {
        return Err("it has no device".into());
    }
    for device in &devices {
        cache.toolchain(device).map_err(|error| bare(&error))?;
    }
    Ok(devices.into_iter().map(Place::Device).collect())
}

/// The backend's own words, where there are such: which backend and kernel, the caller says.
pub(super) fn bare(error: &RuntimeError) -> String {
    error.backend_error().map_or_else(|| error.to_string(), ToString::to_string)
}
