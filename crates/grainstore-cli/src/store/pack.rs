//! `grainstore pack` and `grainstore unpack`: bundles.

use serde::Serialize;

use super::amount::Size;
use super::args::{Pack, Unpack};
use super::{change, look, place, unless_interrupted, until_interrupted};
use crate::exit::{Exit, Failure};
use crate::output::{self, counted};

/// The documented form of `pack --json`.
#[derive(Debug, Serialize)]
struct PackReport {
    store: String,
    path: String,
    artifacts: u64,
    bytes: u64,
}

/// The documented form of `unpack --json`.
#[derive(Debug, Serialize)]
struct UnpackReport {
    store: String,
    added: u64,
    present: u64,
    rejected: Vec<RejectedShown>,
}

#[derive(Debug, Serialize)]
struct RejectedShown {
    fingerprint: String,
    error: String,
}

/// Writes a bundle.
pub(crate) fn pack(arguments: &Pack) -> Result<Exit, Failure> {
    let (interrupt, options) = until_interrupted();
    let Some(store) = look(&arguments.common.store, options)? else {
        return Err(Failure::environment(
            "there is nothing to pack: `grainstore warm` fills a store",
        ));
    };
    let choose = |entry: &grainstore_artifacts::Entry| arguments.which.means(entry);
    let packed = if arguments.oci {
        store.pack_oci(&arguments.output, &arguments.tag, choose)
    } else {
        store.pack(&arguments.output, choose)
    };
    let packed = unless_interrupted(packed, &interrupt, "no bundle was written")?;
    let report = PackReport {
        store: place(&store),
        path: packed.path.display().to_string(),
        artifacts: packed.artifacts,
        bytes: packed.bytes,
    };
    if arguments.common.json {
        output::print_json(&report)?;
    }
    output::note(format!(
        "packed {}, {}, into {}",
        counted(report.artifacts, "artifact", "artifacts"),
        Size(report.bytes),
        report.path
    ));
    if report.artifacts == 0 {
        output::warn("nothing of what was asked for is in the store: `grainstore ls` lists it");
    }
    Ok(Exit::Ok)
}

/// Takes a bundle into the store.
pub(crate) fn unpack(arguments: &Unpack) -> Result<Exit, Failure> {
    let (interrupt, options) = until_interrupted();
    let store = change(&arguments.common.store, options)?;
    let unpacked = unless_interrupted(
        store.unpack(&arguments.bundle),
        &interrupt,
        "what was added until then stays: unpack again for the rest",
    )?;
    let report = UnpackReport {
        store: place(&store),
        added: unpacked.added,
        present: unpacked.present,
        rejected: unpacked
            .rejected
            .iter()
            .map(|(fingerprint, why)| RejectedShown {
                fingerprint: fingerprint.to_string(),
                error: why.to_string(),
            })
            .collect(),
    };
    if arguments.common.json {
        output::print_json(&report)?;
    }
    let present = counted(report.present, "was there", "were there");
    output::note(format!("added {}, {present}", report.added));
    for rejected in &report.rejected {
        output::error(format!("{} was left out: {}", rejected.fingerprint, rejected.error));
    }
    Ok(if report.rejected.is_empty() { Exit::Ok } else { Exit::SomeFailed })
}
