//! `grainstore explain`: why did this miss? The nearest stored key, and the fields that differ.

use std::fmt::Write;

use grainstore::Difference;
use grainstore_artifacts::{ArtifactStore, Entry};
use serde::Serialize;
use serde_json::Value;

use super::args::Explain;
use super::describe::{name, short};
use super::select::is_called;
use super::{open_to_look, place};
use crate::exit::{Exit, Failure};
use crate::output::{self, BOLD};
use crate::warm;

/// The documented form of `explain --json`.
#[derive(Debug, Serialize)]
struct Report {
    store: Option<String>,
    keys: Vec<Explained>,
}

/// A key, and what is nearest to it in the store.
#[derive(Debug, Serialize)]
struct Explained {
    name: String,
    backend: Option<String>,
    device: Option<String>,
    variant: Option<String>,
    fingerprint: String,
    stored: bool,
    nearest: Option<Nearest>,
    #[serde(skip)]
    namespace: String,
    #[serde(skip)]
    fields: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Nearest {
    fingerprint: String,
    name: String,
    differences: Vec<Differs>,
}

/// What differs: stored there, wanted here.
#[derive(Debug, Serialize)]
struct Differs {
    field: String,
    stored: Option<String>,
    wanted: Option<String>,
    #[serde(skip)]
    words: String,
}

/// Explains them.
pub(crate) fn run(arguments: &Explain) -> Result<Exit, Failure> {
    let store = open_to_look(&arguments.common.store)?;
    let mut keys = match &store {
        Some(store) => stored(store, &arguments.kernel)?,
        None => Vec::new(),
    };
    // A manifest's kernel may be in no store yet, and what is in the store in no manifest.
    match warm::wanted(arguments.manifest.as_deref(), &arguments.kernel) {
        Ok(wanted) => {
            let wanted: Vec<_> = wanted.into_iter().map(Explained::wanted).collect();
            // What is wanted is told once, by the manifest's words.
            keys.retain(|key| !wanted.iter().any(|wanted| wanted.fingerprint == key.fingerprint));
            if !wanted.is_empty() {
                keys.retain(|key| key.fingerprint.starts_with(&arguments.kernel.to_lowercase()));
            }
            keys.splice(..0, wanted);
        }
        Err(failure) if keys.is_empty() || arguments.manifest.is_some() => return Err(failure),
        Err(_) => {}
    }
    if keys.is_empty() {
        return Err(Failure::usage(format!(
            "`{}` is neither a kernel of the manifest nor an artifact of the store: `grainstore ls` \
             lists those",
            arguments.kernel
        )));
    }
    if let Some(store) = &store {
        compare(store, &mut keys)?;
    }
    let report = Report { store: store.as_ref().map(place), keys };
    if arguments.common.json {
        output::print_json(&report)?;
    } else {
        output::print(report.keys.iter().map(Explained::text).collect::<String>())?;
    }
    Ok(Exit::Ok)
}

/// The artifacts of that name or fingerprint.
fn stored(store: &ArtifactStore, text: &str) -> Result<Vec<Explained>, Failure> {
    let mut keys = Vec::new();
    for scanned in store.files() {
        if let Ok(entry) = scanned?.entry
            && is_called(&entry, text)
        {
            keys.push(Explained {
                name: name(&entry).to_owned(),
                backend: None,
                device: None,
                variant: None,
                fingerprint: entry.fingerprint().to_string(),
                stored: true,
                nearest: None,
                namespace: entry.namespace().to_owned(),
                fields: described(&entry),
            });
        }
    }
    Ok(keys)
}

/// Goes through the store once, and remembers for each key what is nearest to it.
fn compare(store: &ArtifactStore, keys: &mut [Explained]) -> Result<(), Failure> {
    for scanned in store.files() {
        let Ok(entry) = scanned?.entry else { continue };
        let fingerprint = entry.fingerprint().to_string();
        for key in keys.iter_mut().filter(|key| key.namespace == entry.namespace()) {
            if key.fingerprint == fingerprint {
                key.stored = true;
                continue;
            }
            let fields = if key.is_foreign() { described(&entry) } else { plain(&entry) };
            let differences = Difference::between(fields, key.fields.iter().cloned());
            let candidate = Nearest {
                fingerprint: fingerprint.clone(),
                name: name(&entry).to_owned(),
                differences: differences.into_iter().map(Differs::new).collect(),
            };
            if key
                .nearest
                .as_ref()
                .is_none_or(|nearest| candidate.distance(&key.name) < nearest.distance(&key.name))
            {
                key.nearest = Some(candidate);
            }
        }
    }
    Ok(())
}

fn plain(entry: &Entry) -> Vec<(String, String)> {
    entry.fields().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The key's fields, and for a key that others made, which says little by itself, what was written
/// beside it.
fn described(entry: &Entry) -> Vec<(String, String)> {
    let mut fields = plain(entry);
    if is_foreign(entry.namespace()) {
        let metadata = entry.group().metadata().and_then(Value::as_object);
        fields.extend(metadata.into_iter().flatten().map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (format!("metadata {name}"), value)
        }));
        let toolchain = entry.group().toolchain().map(str::to_owned);
        fields.extend(toolchain.map(|toolchain| ("toolchain".into(), toolchain)));
    }
    fields
}

/// Made by another program.
fn is_foreign(namespace: &str) -> bool {
    !["kernel", "plan"].contains(&namespace)
}

impl Explained {
    fn wanted(wanted: warm::Wanted) -> Self {
        Self {
            name: wanted.key.name().to_owned(),
            backend: Some(wanted.backend),
            device: Some(wanted.device),
            variant: Some(wanted.variant),
            fingerprint: wanted.key.fingerprint().to_string(),
            stored: false,
            nearest: None,
            namespace: "kernel".into(),
            fields: wanted
                .key
                .fields()
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        }
    }

    fn is_foreign(&self) -> bool {
        is_foreign(&self.namespace)
    }

    fn text(&self) -> String {
        let mut text = format!("{BOLD}{}{BOLD:#}", self.name);
        for (word, part) in [("", &self.variant), ("on", &self.device)] {
            let part = part.as_deref().unwrap_or_default();
            if part.is_empty() {
                continue;
            }
            text.push_str(&[" ", word, if word.is_empty() { "" } else { " " }, part].concat());
        }
        let is = if self.stored { "in the store" } else { "not in the store" };
        // Writing to a text does not fail.
        let _ = writeln!(text, ": {is} ({})", short(&self.fingerprint));
        match &self.nearest {
            Some(nearest) => {
                let _ = writeln!(
                    text,
                    "  the nearest {}is {} ({}), which differs in",
                    if self.stored { "other " } else { "" },
                    nearest.name,
                    short(&nearest.fingerprint)
                );
                for differs in &nearest.differences {
                    let _ = writeln!(text, "    {}", differs.words);
                }
            }
            None => text.push_str("  nothing else of its kind is in the store\n"),
        }
        text
    }
}

impl Nearest {
    /// A kernel of the same name is nearer than any other.
    fn distance(&self, name: &str) -> (bool, usize) {
        (self.name != name, self.differences.len())
    }
}

impl Differs {
    fn new(difference: Difference) -> Self {
        let words = difference.to_string();
        Self { field: difference.field, stored: difference.this, wanted: difference.other, words }
    }
}
