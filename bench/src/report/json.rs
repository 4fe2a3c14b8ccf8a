//! The same for programs: one object, whose `schema` changes when its shape does.

use serde::Serialize;

use super::Results;
use super::goals::Goal;
use crate::rows::Table;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    mode: &'a str,
    machine: Machine,
    rows: &'a [Table],
    goals: &'a [Goal],
}

#[derive(Serialize)]
struct Machine {
    os: &'static str,
    arch: &'static str,
    processors: usize,
}

/// The whole run as JSON.
///
/// # Errors
/// If a figure can't be written, which would be a mistake of this program.
pub fn document(mode: &str, results: &Results, goals: &[Goal]) -> Result<String, String> {
    let machine = Machine {
        os: std::env::consts::OS,
        arch: std::env::consts::ARCH,
        processors: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let document = Document { schema: 1, mode, machine, rows: &results.rows, goals };
    serde_json::to_string_pretty(&document).map_err(|error| format!("no JSON of this: {error}"))
}
