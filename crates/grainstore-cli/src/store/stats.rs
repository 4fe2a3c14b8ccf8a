//! `grainstore stats`: what the store takes, and what all processes did with it.

use std::collections::BTreeMap;
use std::fmt;

use grainstore_artifacts::Statistics;
use serde::Serialize;

use super::amount::Size;
use super::{open_to_look, place};
use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::output::{self, counted, human, millis};

/// The documented form of `stats --json`.
#[derive(Debug, Default, Serialize)]
struct Report {
    store: Option<String>,
    artifacts: u64,
    broken: u64,
    disk_bytes: u64,
    namespaces: BTreeMap<String, Held>,
    hits: u64,
    misses: u64,
    waited: u64,
    writes: u64,
    imported: u64,
    rejected: BTreeMap<&'static str, u64>,
    read_failures: u64,
    write_failures: u64,
    removed: u64,
    pruned: u64,
    swept: u64,
    crashes: u64,
    saved_ms: f64,
    compile_ms: f64,
    #[serde(skip)]
    figures: Statistics,
}

/// What one namespace holds.
#[derive(Debug, Default, Serialize)]
struct Held {
    artifacts: u64,
    disk_bytes: u64,
}

/// Gathers and tells it.
pub(crate) fn run(arguments: &Common) -> Result<Exit, Failure> {
    let mut report = Report::default();
    if let Some(store) = open_to_look(&arguments.store)? {
        report.store = Some(place(&store));
        for scanned in store.files() {
            let scanned = scanned?;
            report.disk_bytes += scanned.disk;
            match scanned.entry {
                Ok(entry) => {
                    report.artifacts += 1;
                    let held = report.namespaces.entry(entry.namespace().to_owned()).or_default();
                    held.artifacts += 1;
                    held.disk_bytes += scanned.disk;
                }
                Err(_) => report.broken += 1,
            }
        }
        report.take(store.overall_statistics());
    }
    if arguments.json {
        output::print_json(&report)?;
    } else if report.store.is_some() {
        output::print(&report)?;
    }
    Ok(Exit::Ok)
}

impl Report {
    fn take(&mut self, figures: Statistics) {
        self.hits = figures.hits;
        self.misses = figures.misses;
        self.waited = figures.waited;
        self.writes = figures.writes;
        self.imported = figures.imported;
        self.rejected = figures.rejected.iter().copied().collect();
        self.read_failures = figures.read_failures;
        self.write_failures = figures.write_failures;
        self.removed = figures.removed;
        self.pruned = figures.pruned;
        self.swept = figures.swept;
        self.crashes = figures.crashes;
        self.saved_ms = millis(figures.saved);
        self.compile_ms = millis(figures.compile_time);
        self.figures = figures;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(store) = &self.store {
            writeln!(f, "store          {store}")?;
        }
        writeln!(f, "artifacts      {}, {} on disk", self.artifacts, Size(self.disk_bytes))?;
        for (name, held) in &self.namespaces {
            writeln!(f, "  {name:<12} {}, {}", held.artifacts, Size(held.disk_bytes))?;
        }
        if self.broken > 0 {
            writeln!(f, "not whole      {}: `grainstore verify` says which", self.broken)?;
        }
        let asked = self.hits + self.misses;
        if asked > 0 {
            let rate = self.hits as f64 * 100.0 / asked as f64;
            writeln!(f, "look-ups       {asked}, {rate:.1} % of them hits")?;
        } else {
            writeln!(f, "look-ups       none yet")?;
        }
        writeln!(f, "saved          {} of compiling", human(self.figures.saved))?;
        if self.writes > 0 {
            let took = human(self.figures.compile_time);
            writeln!(f, "written        {}, which took {took} to compile", self.writes)?;
        }
        let rest = [
            ("imported", self.imported, "artifact", "artifacts", "from bundles"),
            ("waited", self.waited, "look-up", "look-ups", "that waited for another process"),
            ("pruned", self.pruned, "file", "files", "to keep the store within its limit"),
            ("removed", self.removed, "artifact", "artifacts", "on demand"),
            ("swept", self.swept, "unfinished file", "unfinished files", "of processes that died"),
            ("crashes", self.crashes, "load", "loads", "that ended a process"),
            ("failed reads", self.read_failures, "look-up", "look-ups", "that ended with an error"),
            (
                "failed writes",
                self.write_failures,
                "artifact",
                "artifacts",
                "that could not be written",
            ),
        ];
        for (name, count, one, many, what) in rest.into_iter().filter(|row| row.1 > 0) {
            writeln!(f, "{name:<14} {} {what}", counted(count, one, many))?;
        }
        for (reason, count) in &self.rejected {
            writeln!(f, "rejected       {count} ({reason})")?;
        }
        Ok(())
    }
}
