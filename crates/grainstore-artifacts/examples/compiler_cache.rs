//! Another compiler's cache, kept in the store: its own hash is the key, its output folder is filled
//! from the store, and of all processes that start at once one compiles.
//!
//! Run it with `cargo run -p grainstore-artifacts --example compiler_cache`.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use grainstore_artifacts::{ArtifactStore, ForeignKey, Group, LookUp};
use serde_json::json;

/// The compiler that this example has no need of: it gives code and the intermediate text beside it.
fn compile(source: &str) -> (Vec<u8>, String) {
    eprintln!("compiling ...");
    (source.bytes().rev().collect(), format!("; from {} bytes of source", source.len()))
}

/// What its driver does: fill `output` with what belongs to `hash`.
fn build(
    store: &ArtifactStore,
    hash: &str,
    source: &str,
    output: &Path,
) -> Result<bool, Box<dyn Error>> {
    let key = ForeignKey::new("toy-compiler", hash)?;
    let compiled = match store.lookup_or_lease(&key, Duration::from_secs(120))? {
        LookUp::Hit(_) => false,
        LookUp::Lease(_lease) => {
            let (code, text) = compile(source);
            let group = Group::new("kernel.bin", code)
                .with_member("kernel.ll", text.into_bytes())
                .with_toolchain("toy-compiler 1.2")
                .with_metadata(json!({ "warps": 4, "registers": 32 }));
            store.put(&key, &group)?;
            true // the lease goes here, and whoever waits finds the group
        }
    };
    store.materialize(&key, output)?;
    Ok(compiled)
}

fn main() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let store = ArtifactStore::open(place.path().join("store"))?;
    let source = "kernel void saxpy() {}";
    let hash = "saxpy-7f3a9c";

    for (number, expected) in [true, false].into_iter().enumerate() {
        let output = place.path().join(format!("output-{number}"));
        let compiled = build(&store, hash, source, &output)?;
        assert_eq!(compiled, expected);
        let names: Vec<_> = std::fs::read_dir(&output)?.flatten().map(|f| f.file_name()).collect();
        println!("run {number}: compiled {compiled}, {} files in the output folder", names.len());
        assert_eq!(names.len(), 2);
    }

    // What is there, in the compiler's own words.
    for entry in store.scan("toy-compiler") {
        let entry = entry?;
        let key = entry.fields().map(|(_, value)| value.to_owned()).collect::<String>();
        println!("{key}: {}", entry.group().metadata().ok_or("no metadata")?);
    }
    println!("purged: {}", store.purge("toy-compiler")?);
    Ok(())
}
