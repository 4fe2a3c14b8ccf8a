//! What `--json` prints about the store has the fields that its document names, and no others.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::place::{Place, THREE};

const DOCUMENT: &str = include_str!("../../../../docs/store-commands.md");

/// The fields that the document names for that command.
fn documented(command: &str) -> BTreeSet<String> {
    let section = DOCUMENT.split_once("## JSON").unwrap().1;
    let start = format!("\n- `{command}`: ");
    let entry = section.split_once(&start).unwrap_or_else(|| panic!("no {command}")).1;
    let entry = entry.split("\n- ").next().unwrap();
    let mut fields: BTreeSet<_> = entry.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    if command != "ls" && entry.contains("ARTIFACT") {
        // Which is documented there, with one field more.
        fields.extend(documented("ls").into_iter().filter(|field| field != "broken"));
    }
    fields
}

/// The names of all fields below this one. Where the document says `{name: value}`, the names are
/// data.
fn collect(value: &Value, named: &str, fields: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let is_data = ["fields", "metadata", "namespaces", "rejected"].contains(&named);
                if !is_data {
                    fields.insert(name.clone());
                }
                if named != "metadata" {
                    collect(value, if is_data { "" } else { name }, fields);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, "", fields)),
        _ => {}
    }
}

#[test]
fn every_command_prints_the_fields_of_its_document() {
    let place = Place::with_manifest(THREE);
    place.run(&["warm", "--quiet", "--backend", "host"]).expect(0);
    place.run(&["pack", "kernels.tar"]).expect(0);
    // One artifact is broken in the store, and another one in the bundle.
    let stored = place.stored();
    let mut bytes = fs::read(place.path("kernels.tar")).unwrap();
    let within = fs::read(&stored[0]).unwrap();
    let at = bytes.windows(within.len()).position(|window| window == within).unwrap();
    bytes[at + within.len() / 2] ^= 1;
    fs::write(place.path("kernels.tar"), bytes).unwrap();
    fs::write(&stored[1], "broken").unwrap();

    let commands: [(&[&str], i32); 9] = [
        (&["ls"], 0),
        (&["show", "saxpy"], 0),
        (&["stats"], 0),
        (&["explain", "saxpy"], 0),
        (&["verify"], 1),
        (&["pack", "again.tar"], 0),
        (&["unpack", "kernels.tar", "--store", "other"], 1),
        (&["prune", "--yes"], 0),
        (&["clear", "--yes"], 0),
    ];
    for (command, code) in commands {
        let json = place.run(&[command, &["--json"]].concat()).expect(code).json();
        let mut printed = BTreeSet::new();
        collect(&json, "", &mut printed);
        assert_eq!(printed, documented(command[0]), "{command:?}: {json:#}");
        let store = if command[0] == "unpack" { "other" } else { "store" };
        assert_eq!(json["store"], place.path(store).to_str().unwrap(), "{command:?}");
    }
}

/// `warm` and `explain` have the same words for a kernel of the manifest.
#[test]
fn explain_names_a_kernel_as_warm_does() {
    let alone = "[[kernel]]\nname = \"saxpy\"\nsource = \"saxpy.c\"\nbackends = [\"host\"]\n";
    for manifest in [alone, THREE] {
        let place = Place::with_manifest(manifest);
        let warmed = place.run(&["warm", "--backend", "host", "--json"]).expect(0).json();
        let explained = place.run(&["explain", "saxpy", "--json"]).expect(0).json();
        let kernels = warmed["kernels"].as_array().unwrap();
        for (kernel, key) in kernels.iter().zip(explained["keys"].as_array().unwrap()) {
            for field in ["name", "backend", "device", "variant", "fingerprint"] {
                assert_eq!(kernel[field], key[field], "{field}");
            }
        }
    }
}
