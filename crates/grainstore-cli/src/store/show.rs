//! `grainstore show`: everything that is known of an artifact.

use std::fmt::Write;

use grainstore_artifacts::Entry;
use serde::Serialize;
use serde_json::Value;

use super::amount::{Size, ago};
use super::args::Show;
use super::describe::Described;
use super::select::is_called;
use super::{open_to_look, place};
use crate::exit::{Exit, Failure};
use crate::output::{self, BOLD};

/// The documented form of `show --json`.
#[derive(Debug, Serialize)]
struct Shown {
    store: Option<String>,
    artifacts: Vec<Whole>,
}

#[derive(Debug, Serialize)]
struct Whole {
    #[serde(flatten)]
    described: Described,
    members: Vec<MemberShown>,
    metadata: Option<Value>,
    signed_by: Option<String>,
}

#[derive(Debug, Serialize)]
struct MemberShown {
    name: String,
    bytes: u64,
}

/// Shows them.
pub(crate) fn run(arguments: &Show) -> Result<Exit, Failure> {
    let mut shown = Shown { store: None, artifacts: Vec::new() };
    if let Some(store) = open_to_look(&arguments.common.store)? {
        shown.store = Some(place(&store));
        for scanned in store.files() {
            let scanned = scanned?;
            if let Ok(entry) = &scanned.entry
                && is_called(entry, &arguments.kernel)
            {
                shown.artifacts.push(Whole::new(Described::new(&scanned, entry), entry));
            }
        }
    }
    if arguments.common.json {
        output::print_json(&shown)?;
    } else {
        let texts: Vec<_> = shown.artifacts.iter().map(Whole::text).collect();
        output::print(texts.join("\n"))?;
    }
    if shown.artifacts.is_empty() {
        output::error(format!(
            "no artifact is called `{}`: `grainstore ls` lists names and fingerprints",
            arguments.kernel
        ));
        return Ok(Exit::SomeFailed);
    }
    Ok(Exit::Ok)
}

impl Whole {
    fn new(described: Described, entry: &Entry) -> Self {
        let group = entry.group();
        let members = group.members().iter();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            described,
            members: members
                .map(|m| MemberShown { name: m.name.clone(), bytes: m.bytes.len() as u64 })
                .collect(),
            metadata: group.metadata().cloned(),
            signed_by: entry.signature().map(|signature| hex(&signature.public_key)),
        }
    }

    fn text(&self) -> String {
        let described = &self.described;
        let mut text = format!("{BOLD}{}{BOLD:#}\n", described.name);
        let mut line = |name: &str, value: &str| {
            // Writing to a text does not fail.
            let _ = writeln!(text, "  {name:<12}  {value}");
        };
        line("fingerprint", &described.fingerprint);
        line("namespace", &described.namespace);
        for (name, value) in described.in_order.iter().filter(|(name, _)| name != "name") {
            line(name, value);
        }
        if let Some(time) = described.compile_ms {
            line("compile time", &format!("{time} ms"));
        }
        for member in &self.members {
            line("member", &format!("{}, {}", member.name, Size(member.bytes)));
        }
        if let Some(metadata) = &self.metadata {
            line("metadata", &metadata.to_string());
        }
        if let Some(key) = &self.signed_by {
            line("signed by", &format!("{key} (not checked)"));
        }
        line("on disk", &Size(described.disk_bytes).to_string());
        line("used", &ago(described.used_at));
        line("file", &described.path);
        text
    }
}
