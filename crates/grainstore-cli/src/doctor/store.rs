//! The store's folder: may it be read, can it be written, and if not, why.

use std::path::Path;

use grainstore::KernelKey;
use grainstore_artifacts::{ArtifactStore, Group, Options};

use super::report::StoreReport;
use crate::args::StoreLocation;

/// Opens the store, and writes, reads and removes a small artifact of nobody's, which its figures say
/// nothing of.
pub(super) fn examine(location: &StoreLocation) -> StoreReport {
    let mut report = StoreReport::default();
    let folder = match location.folder() {
        Ok(folder) => folder,
        Err(error) => return StoreReport { error: Some(error.to_string()), ..report },
    };
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    report.path = Some(folder.display().to_string());
    match Options::new().uncounted().open(&folder) {
        Ok(store) => {
            report.path = Some(store.path().display().to_string());
            report.readable = true;
            match round_trip(&store) {
                Ok(()) => report.writable = true,
                Err(error) => report.error = Some(error),
            }
        }
        Err(error) => report.error = Some(error.to_string()),
    }
    report.mode = mode(&folder);
    if report.error.is_some() {
        report.hint = Some("--store or GRAINSTORE_DIR puts the store elsewhere".into());
    }
    report
}

fn round_trip(store: &ArtifactStore) -> Result<(), String> {
    // The process is part of the key, so that two doctors on one folder do not meet.
    let key = KernelKey::builder("grainstore-doctor")
        .target("none")
        .toolchain(std::process::id().to_string())
        .language("none")
        .source("none")
        .build()
        .map_err(|error| error.to_string())?;
    let group = Group::new("check", b"check".to_vec());
    store.put(&key, &group).map_err(|error| error.to_string())?;
    let read = store.get(&key).map_err(|error| error.to_string());
    store.remove(&key).map_err(|error| error.to_string())?;
    match read? {
        Some(read) if read.binary() == b"check" => Ok(()),
        _ => Err("what was written into it can't be read back".into()),
    }
}

#[cfg(unix)]
fn mode(folder: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = folder.metadata().ok()?;
    Some(format!("{:04o}", metadata.permissions().mode() & 0o7777))
}

#[cfg(not(unix))]
fn mode(_: &Path) -> Option<String> {
    None
}
