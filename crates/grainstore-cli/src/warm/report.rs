//! What became of each kernel, as a table for people and as one JSON object for scripts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::output::{Align, Table, human, millis};

/// Where a kernel came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Compiled,
    Disk,
    Remote,
    Memory,
    Failed,
}

/// One variant of a kernel on one device.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) backend: String,
    pub(super) device: String,
    pub(super) variant: String,
    pub(super) outcome: Outcome,
    pub(super) ms: f64,
    pub(super) fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What of it the compiler took.
    #[serde(skip)]
    pub(super) compile_time: Duration,
}

impl Row {
    /// A kernel whose entry in the manifest is wrong: it has come to no backend.
    pub(super) fn wrong(name: &str, error: String) -> Self {
        Self {
            name: name.to_owned(),
            backend: String::new(),
            device: String::new(),
            variant: String::new(),
            outcome: Outcome::Failed,
            ms: 0.0,
            fingerprint: None,
            error: Some(error),
            compile_time: Duration::ZERO,
        }
    }
}

/// All rows, and their sums. The names of the fields are the documented form of `warm --json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    compiled: usize,
    disk: usize,
    remote: usize,
    memory: usize,
    failed: usize,
    elapsed_ms: f64,
    compile_ms: f64,
    kernels: Vec<Row>,
    #[serde(skip)]
    walls: Walls,
}

/// For each backend the time from its first kernel's start to its last one's end.
pub(super) type Walls = BTreeMap<String, Duration>;

impl Report {
    /// `compile_ms` is what the compilers took, summed: more than the elapsed time where they ran
    /// side by side.
    pub(super) fn new(kernels: Vec<Row>, walls: Walls, elapsed: Duration) -> Self {
        let count = |outcome| kernels.iter().filter(|row| row.outcome == outcome).count();
        let compile_time: Duration = kernels.iter().map(|row| row.compile_time).sum();
        Self {
            compiled: count(Outcome::Compiled),
            disk: count(Outcome::Disk),
            remote: count(Outcome::Remote),
            memory: count(Outcome::Memory),
            failed: count(Outcome::Failed),
            elapsed_ms: millis(elapsed),
            compile_ms: millis(compile_time),
            kernels,
            walls,
        }
    }

    pub(super) fn failed(&self) -> usize {
        self.failed
    }

    /// A row for each backend.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new([
            ("backend", Align::Left),
            ("compiled", Align::Right),
            ("from disk", Align::Right),
            ("failed", Align::Right),
            ("time", Align::Right),
        ]);
        for (backend, wall) in &self.walls {
            let count = |outcomes: &[Outcome]| {
                let of_backend = self.kernels.iter().filter(|row| row.backend == *backend);
                of_backend.filter(|row| outcomes.contains(&row.outcome)).count().to_string()
            };
            table.row([
                backend.clone(),
                count(&[Outcome::Compiled]),
                // What another variant of this run already put into memory came from there too.
                count(&[Outcome::Disk, Outcome::Memory, Outcome::Remote]),
                count(&[Outcome::Failed]),
                human(*wall),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(backend: &str, outcome: Outcome, ms: f64) -> Row {
        Row {
            name: "k".into(),
            backend: backend.into(),
            device: format!("{backend}:0"),
            variant: "N=1".into(),
            outcome,
            ms,
            fingerprint: (outcome != Outcome::Failed).then(|| "ab".into()),
            error: (outcome == Outcome::Failed).then(|| "no".into()),
            compile_time: match outcome {
                Outcome::Compiled => Duration::from_millis(25),
                _ => Duration::ZERO,
            },
        }
    }

    fn report() -> Report {
        let rows = vec![
            row("host", Outcome::Compiled, 30.25),
            row("host", Outcome::Compiled, 40.5),
            row("host", Outcome::Disk, 0.5),
            row("opencl", Outcome::Failed, 7.0),
        ];
        let walls = [("host", 50), ("opencl", 7)]
            .map(|(name, ms)| (name.to_owned(), Duration::from_millis(ms)));
        Report::new(rows, walls.into(), Duration::from_millis(60))
    }

    #[test]
    fn the_json_has_the_documented_fields() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "compiled": 2, "disk": 1, "remote": 0, "memory": 0, "failed": 1,
                "elapsed_ms": 60.0, "compile_ms": 50.0,
                "kernels": [
                    {"name": "k", "backend": "host", "device": "host:0", "variant": "N=1",
                     "outcome": "compiled", "ms": 30.25, "fingerprint": "ab"},
                    {"name": "k", "backend": "host", "device": "host:0", "variant": "N=1",
                     "outcome": "compiled", "ms": 40.5, "fingerprint": "ab"},
                    {"name": "k", "backend": "host", "device": "host:0", "variant": "N=1",
                     "outcome": "disk", "ms": 0.5, "fingerprint": "ab"},
                    {"name": "k", "backend": "opencl", "device": "opencl:0", "variant": "N=1",
                     "outcome": "failed", "ms": 7.0, "fingerprint": null, "error": "no"},
                ],
            })
        );
    }

    #[test]
    fn the_document_names_every_field() {
        let document = include_str!("../../../../docs/warm-and-doctor.md");
        let json = serde_json::to_value(report()).unwrap();
        for object in [&json, &json["kernels"][3]] {
            for field in object.as_object().unwrap().keys() {
                assert!(document.contains(&format!("\"{field}\"")), "{field}");
            }
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_backend() {
        let shown = anstream::adapter::strip_str(&report().table().to_string()).to_string();
        let expected = "\
backend  compiled  from disk  failed     time
host            2          1       0  50.0 ms
opencl          0          0       1   7.0 ms
";
        assert_eq!(shown, expected);
    }
}
