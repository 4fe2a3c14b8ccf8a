//! `grainstore prune` and `grainstore clear`: what deletes.

use serde::Serialize;

use super::amount::Size;
use super::args::{Clear, Prune};
use super::confirm::confirm;
use super::{change, open_to_look, place, unless_interrupted, until_interrupted};
use crate::exit::{Exit, Failure};
use crate::output::{self, counted};

/// How things stand where one of them was interrupted.
const STANDING: &str =
    "what was deleted until then is gone, and the rest is whole: do it again for that";

/// The documented form of `prune --json`.
#[derive(Debug, Default, Serialize)]
struct PruneReport {
    store: Option<String>,
    removed: u64,
    removed_disk_bytes: u64,
    kept: u64,
    kept_disk_bytes: u64,
}

/// The documented form of `clear --json`.
#[derive(Debug, Default, Serialize)]
struct ClearReport {
    store: Option<String>,
    removed: u64,
}

/// Removes what was not used for longest.
pub(crate) fn prune(arguments: &Prune) -> Result<Exit, Failure> {
    let mut report = PruneReport::default();
    if open_to_look(&arguments.common.store)?.is_some() {
        let what = format!(
            "this deletes what was not used for longest, until at most {} is left",
            arguments.max_size
        );
        if !confirm(arguments.consent.yes, &what)? {
            return Ok(Exit::Ok);
        }
        let (interrupt, options) = until_interrupted();
        let store = change(&arguments.common.store, options)?;
        let pruned = unless_interrupted(store.prune(arguments.max_size.0), &interrupt, STANDING)?;
        report = PruneReport {
            store: Some(place(&store)),
            removed: pruned.removed,
            removed_disk_bytes: pruned.removed_bytes,
            kept: pruned.kept,
            kept_disk_bytes: pruned.kept_bytes,
        };
    }
    if arguments.common.json {
        output::print_json(&report)?;
    }
    output::note(format!(
        "removed {}, {}; kept {}, {}",
        counted(report.removed, "file", "files"),
        Size(report.removed_disk_bytes),
        report.kept,
        Size(report.kept_disk_bytes)
    ));
    Ok(Exit::Ok)
}

/// Removes everything, or one namespace.
pub(crate) fn clear(arguments: &Clear) -> Result<Exit, Failure> {
    let mut report = ClearReport::default();
    if let Some(store) = open_to_look(&arguments.common.store)? {
        let at = place(&store);
        let what = match &arguments.namespace {
            Some(name) => format!("this deletes every artifact of the namespace {name} in {at}"),
            None => format!("this deletes every artifact in {at}"),
        };
        if !confirm(arguments.consent.yes, &what)? {
            return Ok(Exit::Ok);
        }
        let (interrupt, options) = until_interrupted();
        let store = change(&arguments.common.store, options)?;
        let removed = match &arguments.namespace {
            Some(name) => store.purge(name),
            None => store.clear(),
        };
        report.store = Some(place(&store));
        report.removed = unless_interrupted(removed, &interrupt, STANDING)?;
    }
    if arguments.common.json {
        output::print_json(&report)?;
    }
    output::note(format!("removed {}", counted(report.removed, "file", "files")));
    Ok(Exit::Ok)
}
