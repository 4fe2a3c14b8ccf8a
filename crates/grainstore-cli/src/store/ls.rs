//! `grainstore ls`: what the store holds, what was used last first.

use std::cmp::Reverse;

use serde::Serialize;

use super::amount::{Size, ago};
use super::args::Ls;
use super::describe::{Described, short};
use super::variant::variants;
use super::{open_to_look, place};
use crate::exit::{Exit, Failure};
use crate::output::{self, Align, Table, counted};

/// The documented form of `ls --json`.
#[derive(Debug, Default, Serialize)]
struct Listing {
    store: Option<String>,
    artifacts: Vec<Described>,
    /// Files that are not whole. `verify` says which.
    broken: u64,
}

/// Lists them.
pub(crate) fn run(arguments: &Ls) -> Result<Exit, Failure> {
    let mut listing = Listing::default();
    if let Some(store) = open_to_look(&arguments.common.store)? {
        listing.store = Some(place(&store));
        for scanned in store.files() {
            let scanned = scanned?;
            match &scanned.entry {
                Ok(entry) if arguments.which.means(entry) => {
                    listing.artifacts.push(Described::new(&scanned, entry));
                }
                Ok(_) => {}
                Err(_) => listing.broken += 1,
            }
        }
    }
    listing.artifacts.sort_by_key(|artifact| Reverse(artifact.used_at));
    if arguments.common.json {
        output::print_json(&listing)?;
        return Ok(Exit::Ok);
    }
    if !listing.artifacts.is_empty() {
        output::print(table(&listing.artifacts))?;
    }
    let total: u64 = listing.artifacts.iter().map(|artifact| artifact.disk_bytes).sum();
    let artifacts = counted(listing.artifacts.len(), "artifact", "artifacts");
    output::note(format!("{artifacts}, {} on disk", Size(total)));
    if listing.broken > 0 {
        output::warn(format!(
            "{} not whole, and will be made anew: `grainstore verify` says which",
            counted(listing.broken, "file is", "files are")
        ));
    }
    Ok(Exit::Ok)
}

/// What tells artifacts of one name and target apart has a column where there are such.
fn table(artifacts: &[Described]) -> Table {
    let variants = variants(artifacts);
    let told_apart = variants.iter().any(|variant| !variant.is_empty());
    let mut columns =
        vec![("fingerprint", Align::Left), ("name", Align::Left), ("target", Align::Left)];
    columns.extend(told_apart.then_some(("variant", Align::Left)));
    columns.extend([("toolchain", Align::Left), ("size", Align::Right), ("used", Align::Left)]);
    let mut table = Table::new(columns);
    for (artifact, variant) in artifacts.iter().zip(variants) {
        let mut cells = vec![
            short(&artifact.fingerprint).to_owned(),
            artifact.name.clone(),
            artifact.target.as_deref().map_or_else(String::new, shortened),
        ];
        cells.extend(told_apart.then_some(variant));
        cells.extend([
            artifact.toolchain.as_deref().map_or_else(String::new, shortened),
            Size(artifact.bytes).to_string(),
            ago(artifact.used_at),
        ]);
        table.row(cells);
    }
    table
}

/// Identities of compilers and devices fill lines; `show` gives them whole.
fn shortened(text: &str) -> String {
    const MOST: usize = 36;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
