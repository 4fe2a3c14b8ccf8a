//! `grainstore verify`: is every artifact whole?

use serde::Serialize;

use super::open_to_look;
use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::output::{self, counted};

/// The documented form of `verify --json`.
#[derive(Debug, Default, Serialize)]
struct Report {
    store: Option<String>,
    whole: u64,
    broken: Vec<Broken>,
}

#[derive(Debug, Serialize)]
struct Broken {
    path: String,
    why: String,
}

/// Reads all of it.
pub(crate) fn run(arguments: &Common) -> Result<Exit, Failure> {
    let mut report = Report::default();
    if let Some(store) = open_to_look(&arguments.store)? {
        report.store = Some(store.path().display().to_string());
        for scanned in store.files() {
            let scanned = scanned?;
            match scanned.entry {
                Ok(_) => report.whole += 1,
                Err(fault) => report.broken.push(Broken {
                    path: scanned.path.display().to_string(),
                    why: fault.to_string(),
                }),
            }
        }
    }
    if arguments.json {
        output::print_json(&report)?;
    } else {
        let lines = report.broken.iter().map(|file| format!("{}: {}\n", file.path, file.why));
        output::print(lines.collect::<String>())?;
    }
    if report.broken.is_empty() {
        let whole = counted(report.whole, "artifact is", "artifacts are");
        output::note(format!("{whole} whole, and none is broken"));
        return Ok(Exit::Ok);
    }
    output::error(format!(
        "{} not whole, and {} whole. What is not is never loaded: the next request makes the artifact \
         anew, and `grainstore clear` removes all",
        counted(report.broken.len(), "file is", "files are"),
        counted(report.whole, "is", "are"),
    ));
    Ok(Exit::SomeFailed)
}
