//! An artifact in the words that all commands use.

use std::collections::BTreeMap;
use std::time::SystemTime;

use grainstore_artifacts::{Entry, Scanned};
use serde::Serialize;

use super::amount::unix_seconds;
use crate::output::millis;

/// One artifact, as `ls --json` gives it: the ARTIFACT of the document.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Described {
    pub(super) fingerprint: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) target: Option<String>,
    pub(super) toolchain: Option<String>,
    pub(super) bytes: u64,
    pub(super) disk_bytes: u64,
    /// In seconds since 1970.
    pub(super) used: u64,
    pub(super) compile_ms: Option<f64>,
    pub(super) path: String,
    /// All that its key says.
    pub(super) fields: BTreeMap<String, String>,
    /// The same in the key's own order.
    #[serde(skip)]
    pub(super) in_order: Vec<(String, String)>,
    #[serde(skip)]
    pub(super) used_at: SystemTime,
}

impl Described {
    pub(super) fn new(scanned: &Scanned, entry: &Entry) -> Self {
        let toolchain = field(entry, "toolchain").or_else(|| entry.group().toolchain());
        let in_order: Vec<_> =
            entry.fields().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self {
            fingerprint: entry.fingerprint().to_string(),
            namespace: entry.namespace().to_owned(),
            name: name(entry).to_owned(),
            target: field(entry, "target").map(str::to_owned),
            toolchain: toolchain.map(str::to_owned),
            bytes: scanned.length,
            disk_bytes: scanned.disk,
            used: unix_seconds(scanned.used),
            compile_ms: entry.group().compile_time().map(millis),
            path: scanned.path.display().to_string(),
            fields: in_order.iter().cloned().collect(),
            in_order,
            used_at: scanned.used,
        }
    }
}

/// What a person calls it: a kernel's name, else the first thing that its key says.
pub(super) fn name(entry: &Entry) -> &str {
    let first = || entry.fields().next().map(|(_, value)| value);
    field(entry, "name").or_else(first).unwrap_or_default()
}

/// The value of that field of its key.
pub(super) fn field<'e>(entry: &'e Entry, name: &str) -> Option<&'e str> {
    entry.fields().find(|(field, _)| *field == name).map(|(_, value)| value)
}

/// The first digits of a fingerprint: enough for a person.
pub(super) fn short(fingerprint: &str) -> &str {
    fingerprint.get(..12).unwrap_or(fingerprint)
}
