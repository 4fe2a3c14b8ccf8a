//! Where kernels can go: the devices that are here, or targets that need not be.

use std::thread;

use grainstore_runtime::{AnyBackend, BackendCache, Device, Runtime, RuntimeError, Target};

use super::plan::{Asked, Place, wants};
use crate::args::Warm;
use crate::exit::Failure;
use crate::manifest::{KnownBackend, Manifest};

/// What a backend that compiles for no target has to say to one.
const BOUND: &str = "compiles only on a device that is here";

/// Whether some kernel is for some of these backends.
pub(super) fn any(manifest: &Manifest, chosen: &[&KnownBackend]) -> bool {
    wanted(manifest, chosen).next().is_some()
}

/// The devices of the backends that some kernel wants. All are asked at once: a driver may take its
/// time to start.
pub(super) fn devices(
    runtime: &Runtime,
    manifest: &Manifest,
    chosen: &[&KnownBackend],
) -> Vec<Asked> {
    let wanted = wanted(manifest, chosen);
    thread::scope(|scope| {
        let asked: Vec<_> = wanted
            .map(|backend| (backend, scope.spawn(|| devices_of(runtime, &backend.name))))
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

/// The targets that were named, by the backends that some kernel wants and that compile for them.
///
/// # Errors
/// A target that none compiles for, and what each said. Where a backend was meant that compiles for
/// no target, that it does not.
pub(super) fn targets(
    runtime: &Runtime,
    manifest: &Manifest,
    chosen: &[&KnownBackend],
    arguments: &Warm,
) -> Result<Vec<Asked>, Failure> {
    let (ahead, bound): (Vec<_>, Vec<_>) =
        wanted(manifest, chosen).partition(|backend| backend.compiles_ahead);
    // Whoever names such a backend, or has kernels for no other, means it.
    if !bound.is_empty() && (ahead.is_empty() || !arguments.backends.is_empty()) {
        return Err(bound_to_devices(&bound));
    }
    let mut asked: Vec<_> = ahead.into_iter().map(|backend| (backend, Vec::new())).collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    for text in &arguments.targets {
        let target = Target::new(text);
        let mut refusals = Vec::new();
        for (backend, places) in &mut asked {
            match at(runtime, &backend.name, &target) {
                Ok(place) => places.push(place),
                Err(reason) => refusals.push(format!("\n  {}: {reason}", backend.name)),
            }
        }
        if refusals.len() == asked.len() {
            if let Some(meant) = bound.iter().find(|it| is_of(runtime, &it.name, &target)) {
                return Err(bound_to_devices(&[meant]));
            }
            refusals.extend(bound.iter().map(|it| format!("\n  {}: {BOUND}", it.name)));
            let refusals = refusals.concat();
            return Err(Failure::environment(format!(
                "no backend compiles these kernels for `{text}`{refusals}"
            )));
        }
    }
    // Who takes none of them was not meant.
    asked.retain(|(_, places)| !places.is_empty());
    let asked = asked.into_iter();
    Ok(asked
        .map(|(backend, places)| Asked { backend: backend.clone(), places: Ok(places) })
        .collect())
}

fn wanted<'k>(
    manifest: &Manifest,
    chosen: &[&'k KnownBackend],
) -> impl Iterator<Item = &'k KnownBackend> {
    let wants_it =
        |backend: &&KnownBackend| manifest.kernels.iter().any(|kernel| wants(kernel, backend));
    chosen.iter().copied().filter(wants_it)
}

fn bound_to_devices(backends: &[&KnownBackend]) -> Failure {
    let names: Vec<_> = backends.iter().map(|backend| backend.name.as_str()).collect();
    Failure::usage(format!(
        "{}: {BOUND}\n  = help: leave `--target` out: `warm --backend {}` compiles for the devices of \
         this machine",
        names.join(", "),
        names.join(" --backend "),
    ))
}

fn find<'r>(runtime: &'r Runtime, name: &str) -> Result<&'r BackendCache<AnyBackend>, String> {
    let known = runtime.backends().iter().find(|cache| cache.name() == name);
    known.ok_or_else(|| "this program was built without it".into())
}

/// A target of this backend, if it has a compiler for it.
fn at(runtime: &Runtime, name: &str, target: &Target) -> Result<Place, String> {
    let cache = find(runtime, name)?;
    cache.toolchain_for(target).map_err(|error| bare(&error))?;
    Ok(Place::Target(cache.clone(), target.clone()))
}

/// Whether this backend has a device of that target, or one that is called so.
fn is_of(runtime: &Runtime, name: &str, target: &Target) -> bool {
    let text = target.as_str();
    let called = |device: &Device| device.name() == text || device.id().to_string() == text;
    find(runtime, name).is_ok_and(|cache| {
        cache.toolchain_for(target).is_ok()
            || cache.devices().is_ok_and(|devices| devices.iter().any(called))
    })
}

/// The devices of a backend, if it has any and a compiler for each.
fn devices_of(runtime: &Runtime, name: &str) -> Result<Vec<Place>, String> {
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
