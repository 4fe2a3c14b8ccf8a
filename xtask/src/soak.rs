//! `cargo xtask soak --minutes N`: on every backend that works here, launches that are checked while
//! everything under them is torn down; and a table of how much that was, and what was wrong.
//!
//! The soak itself is in `grainstore-conformance`; the program of each backend's conformance test does
//! it where a variable asks for it. Host and OpenCL go once more under AddressSanitizer.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;

use crate::prove;
use crate::report::{Outcome, Report};
use crate::shell;

const USAGE: &str = "\
usage: cargo xtask soak [--minutes N] [--seed N] [--backend NAME]... [--no-sanitizer]

  --minutes       for each backend (default: 1)
  --seed          what the threads do; the same number is the same choices (default: 0)
  --backend       these alone; may be repeated
  --no-sanitizer  not once more under AddressSanitizer

Ctrl-C ends it; the table shows what was done until then.";

/// Those that are known to bear the sanitizer: other drivers have their own way with memory.
const SANITIZED: [&str; 2] = ["host", "opencl"];

/// What the command line asks for.
struct Soak {
    seconds: u64,
    seed: u64,
    /// All, where it is empty.
    backends: Vec<String>,
    /// Backends whose driver must be here.
    required: Vec<String>,
    sanitizer: bool,
}

/// As the command line says, or nothing if that makes no sense.
pub(crate) fn command(arguments: &[&str]) -> Option<Report> {
    let Some(soak) = parse(arguments) else {
        eprintln!("{USAGE}");
        return None;
    };
    let mut report = Report::default();
    soak.run(&mut report);
    Some(report)
}

/// For so many seconds on each backend, without the sanitizer. Those that work here are required.
pub(crate) fn run(report: &mut Report, seconds: u64, works: &[&str]) {
    let required = works.iter().map(ToString::to_string).collect();
    Soak { seconds, seed: 0, backends: Vec::new(), required, sanitizer: false }.run(report);
}

/// The conformance test of a backend, already built, whose driver must be here: for so many seconds, and
/// killed if it is not over within the limit. Gives its row of the table, and what became of it.
pub(crate) fn run_program(
    backend: &str,
    command: &mut Command,
    seconds: u64,
    limit: Duration,
) -> (Outcome, Option<Row>) {
    let (outcome, said) = shell::show_within(set(command, seconds, 0, backend), limit);
    judge(backend.to_owned(), outcome, &said)
}

fn parse(arguments: &[&str]) -> Option<Soak> {
    let mut soak =
        Soak { seconds: 60, seed: 0, backends: Vec::new(), required: Vec::new(), sanitizer: true };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--minutes" => {
                let minutes: f64 = arguments.next()?.parse().ok()?;
                soak.seconds = (minutes > 0.0).then(|| (minutes * 60.0).ceil() as u64)?;
            }
            "--seed" => soak.seed = arguments.next()?.parse().ok()?,
            "--backend" => soak.backends.push((*arguments.next()?).to_owned()),
            "--no-sanitizer" => soak.sanitizer = false,
            _ => return None,
        }
    }
    // Who names a backend wants to hear that it is not here.
    soak.required.clone_from(&soak.backends);
    Some(soak)
}

impl Soak {
    fn run(&self, report: &mut Report) {
        let known = backends();
        for name in self.backends.iter().filter(|name| !known.contains(*name)) {
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            let why = format!("there is no such backend; there are: {}", known.join(", "));
            report.step(&format!("soak of {name}"), || Outcome::Failed(why));
        }
        let stop = Arc::new(AtomicBool::new(false));
        // The programs hear of Ctrl-C themselves; this one stays to print the table.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&stop));
        let mut rows = Vec::new();
        let wanted = |name: &&String| self.backends.is_empty() || self.backends.contains(name);
        for name in known.iter().filter(wanted) {
            let ways = if self.sanitizer && SANITIZED.contains(&name.as_str()) { 2 } else { 1 };
            for sanitizer in [false, true].into_iter().take(ways) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                self.one(report, name, sanitizer, &mut rows);
            }
        }
        print(&rows);
    }

    fn one(&self, report: &mut Report, name: &str, sanitizer: bool, rows: &mut Vec<Row>) {
        let label = if sanitizer { format!("{name}, AddressSanitizer") } else { name.to_owned() };
        let step = format!("soak of {label} for {} s", self.seconds);
        if sanitizer && let Some(why) = prove::why_no_sanitizer() {
            return report.not_run(&step, why);
        }
        report.step(&step, || {
            let program = match program(name, sanitizer) {
                Ok(program) => program,
                Err(outcome) => return outcome,
            };
            let mut command = shell::program(&program.to_string_lossy());
            command.current_dir(shell::root().join("backends").join(name));
            set(&mut command, self.seconds, self.seed, &self.required.join(","));
            if sanitizer {
                // Drivers and compilers keep things to the end of the process.
                command.env("ASAN_OPTIONS", "detect_leaks=0");
            }
            let (outcome, said) = shell::show(&mut command);
            let (outcome, row) = judge(label, outcome, &said);
            rows.extend(row);
            outcome
        });
    }
}

/// Has a conformance test do the soak.
fn set<'c>(command: &'c mut Command, seconds: u64, seed: u64, required: &str) -> &'c mut Command {
    command
        .env("GRAINSTORE_SOAK_SECONDS", seconds.to_string())
        .env("GRAINSTORE_SOAK_SEED", seed.to_string())
        .env("GRAINSTORE_REQUIRE", required)
}

/// What became of a soak, by how its program ended and what it said.
fn judge(label: String, outcome: Outcome, said: &str) -> (Outcome, Option<Row>) {
    let row = said.lines().find_map(|line| line.strip_prefix("soak: "));
    let row = row.and_then(|row| Row::new(label, row));
    let reason = said.lines().find_map(|line| line.strip_prefix("not run: "));
    let outcome = match (outcome, &row, reason) {
        (Outcome::Passed, None, Some(reason)) => Outcome::NotRun(reason.to_owned()),
        (Outcome::Passed, None, None) => Outcome::Failed("it said nothing".into()),
        (outcome, _, _) => outcome,
    };
    (outcome, row)
}

/// The backends that have a conformance test, by name.
fn backends() -> BTreeSet<String> {
    let folders = fs::read_dir(shell::root().join("backends"));
    let folders = folders.into_iter().flatten().flatten();
    folders
        .filter(|folder| folder.path().join("tests/conformance.rs").exists())
        .map(|folder| folder.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Builds the conformance test of a backend, and says where it is.
fn program(backend: &str, sanitizer: bool) -> Result<PathBuf, Outcome> {
    #[derive(Deserialize)]
    struct Message {
        package_id: Option<String>,
        executable: Option<PathBuf>,
    }
    let package = format!("grainstore-{backend}");
    let what = ["--test", "conformance", "--no-run", "--message-format=json-render-diagnostics"];
    let mut command: Command = if sanitizer {
        prove::with_sanitizer(&[&["test", "--package", &package][..], &what].concat())
    } else {
        // As the tests are built, so that nothing is built twice.
        shell::cargo(&[&["test", "--workspace", "--all-features"][..], &what].concat())
    };
    // Standard output carries the messages; people read what goes to standard error.
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| Outcome::Failed(format!("cargo: {error}")))?;
    if !output.status.success() {
        return Err(Outcome::Failed(format!("the conformance test of {backend} does not build")));
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| {
            let id = message.package_id.as_deref().unwrap_or_default();
            id.contains(&format!("#{package}@"))
        })
        .filter_map(|message| message.executable)
        .next_back()
        .ok_or_else(|| Outcome::Failed("cargo names no program".into()))
}

/// What came of one soak.
pub(crate) struct Row {
    label: String,
    /// As the program wrote them, in the order of [`COLUMNS`].
    figures: Vec<String>,
}

const COLUMNS: [&str; 6] =
    ["minutes", "launches", "teardowns", "deferred releases", "wrong results", "handles left"];

impl Row {
    /// What the program wrote: its backend's name and the figures.
    fn new(label: String, line: &str) -> Option<Self> {
        let figures: Vec<_> = line.split('|').skip(1).map(|cell| cell.trim().to_owned()).collect();
        (figures.len() == COLUMNS.len()).then_some(Self { label, figures })
    }
}

/// The table.
pub(crate) fn print(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let width = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0).max(7);
    println!("\n{:width$}  {}", "backend", COLUMNS.join("  "));
    for row in rows {
        let cells: Vec<_> = row
            .figures
            .iter()
            .zip(COLUMNS)
            .map(|(figure, column)| format!("{figure:>width$}", width = column.len()))
            .collect();
        println!("{:width$}  {}", row.label, cells.join("  "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_read() {
        let soak = parse(&["--minutes", "0.5", "--backend", "host", "--seed", "7"]).unwrap();
        assert_eq!((soak.seconds, soak.seed, soak.sanitizer), (30, 7, true));
        assert_eq!(soak.backends, ["host"]);
        assert_eq!(parse(&[]).map(|soak| soak.seconds), Some(60));
        for wrong in [&["--minutes"][..], &["--minutes", "0"], &["--minutes", "x"], &["all"]] {
            assert!(parse(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let row = Row::new("host".into(), "host | 0.20 | 1153 | 108 | 116 | 0 | 0").unwrap();
        assert_eq!(row.figures, ["0.20", "1153", "108", "116", "0", "0"]);
        assert!(Row::new("host".into(), "host | 0.20").is_none());
    }
}
