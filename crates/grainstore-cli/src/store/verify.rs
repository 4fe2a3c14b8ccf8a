//! `grainstore verify`: is every artifact whole?

use serde::Serialize;

use super::args::Look;
use super::open_to_look;
use crate::exit::{Exit, Failure};
use crate::output;

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
pub(crate) fn run(arguments: &Look) -> Result<Exit, Failure> {
    let mut report = Report::default();
    if let Some(store) = open_to_look(&arguments.store)? {
        report.store = Some(store.path().display().to_string());
        for scanned in store.files() {
            let scanned = scanned.map_err(Failure::environment)?;
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
        output::note(format!("{} artifacts, all of them whole", report.whole));
        return Ok(Exit::Ok);
    }
    output::error(format!(
        "{} files are not whole ({} are). None of them is ever loaded: the next request makes the \
         artifact anew, and `grainstore clear` removes all",
        report.broken.len(),
        report.whole
    ));
    Ok(Exit::SomeFailed)
}
