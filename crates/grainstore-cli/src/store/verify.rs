//! `grainstore verify`: is every artifact whole?

use serde::Serialize;

use super::{open_to_look, place};
use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::output::{self, counted};

/// The documented form of `verify --json`.
#[derive(Debug, Default, Serialize)]
struct Report {
    store: Option<String>,
    /// Those that are whole.
    artifacts: u64,
    broken: u64,
    files: Vec<Broken>,
}

/// A file that is not whole.
#[derive(Debug, Serialize)]
struct Broken {
    path: String,
    error: String,
}

/// Reads all of it.
pub(crate) fn run(arguments: &Common) -> Result<Exit, Failure> {
    let mut report = Report::default();
    if let Some(store) = open_to_look(&arguments.store)? {
        report.store = Some(place(&store));
        for scanned in store.files() {
            let scanned = scanned?;
            match scanned.entry {
                Ok(_) => report.artifacts += 1,
                Err(fault) => report.files.push(Broken {
                    path: scanned.path.display().to_string(),
                    error: fault.to_string(),
                }),
            }
        }
    }
    report.broken = report.files.len() as u64;
    if arguments.json {
        output::print_json(&report)?;
    } else {
        let lines = report.files.iter().map(|file| format!("{}: {}\n", file.path, file.error));
        output::print(lines.collect::<String>())?;
    }
    if report.broken == 0 {
        let whole = counted(report.artifacts, "artifact is", "artifacts are");
        output::note(format!("{whole} whole, and none is broken"));
        return Ok(Exit::Ok);
    }
    output::error(format!(
        "{} not whole, and {} whole. What is not is never loaded: the next request makes the artifact \
         anew, and `grainstore clear` removes all",
        counted(report.broken, "file is", "files are"),
        counted(report.artifacts, "is", "are"),
    ));
    Ok(Exit::SomeFailed)
}
