//! An autotuner's records: which configuration was the fastest for a kernel, a shape and a device.
//! They live beside the kernels, under the same bound, and are never mixed up with them.
//!
//! Run it with `cargo run -p grainstore-artifacts --example autotuner`.

use std::error::Error;

use grainstore_artifacts::{ArtifactStore, ForeignKey, Group};
use serde_json::{Value, json};

/// One record. What the result depends on is in the key; the result is the group.
struct Tuner {
    store: ArtifactStore,
    device: &'static str,
}

impl Tuner {
    fn key(&self, kernel: &str, shape: [u64; 3]) -> Result<ForeignKey, Box<dyn Error>> {
        // Any bytes that say everything, in one way only: here JSON with its fields in order.
        let key = json!({ "device": self.device, "kernel": kernel, "shape": shape });
        Ok(ForeignKey::new("toy-tuner", key.to_string())?)
    }

    /// The best block size, from the record or by trying.
    fn best(&self, kernel: &str, shape: [u64; 3]) -> Result<u64, Box<dyn Error>> {
        let key = self.key(kernel, shape)?;
        if let Some(record) = self.store.get(&key)? {
            let record: Value = serde_json::from_slice(record.binary())?;
            return record["block"].as_u64().ok_or_else(|| "a record without a block".into());
        }
        let times = [32, 64, 128, 256].map(|block| (block, measure(shape, block)));
        let best = times.iter().min_by_key(|(_, time)| *time).map_or(64, |(block, _)| *block);
        let record = Group::new("record.json", json!({ "block": best }).to_string().into_bytes())
            .with_metadata(json!({ "tried": times.len() }));
        // If another process was faster, its answer is the one that everybody uses.
        match self.store.put_if_absent(&key, &record)? {
            Some(_) => self.best(kernel, shape),
            None => Ok(best),
        }
    }
}

/// What would be a launch with a timer around it.
fn measure(shape: [u64; 3], block: u64) -> u64 {
    shape.iter().map(|size| size.div_ceil(block) * (block + 40)).sum()
}

fn main() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let tuner = Tuner { store: ArtifactStore::open(place.path())?, device: "sm_90a" };
    for shape in [[4096, 4096, 128], [31, 7, 5], [4096, 4096, 128]] {
        println!("matmul {shape:?}: block {}", tuner.best("matmul", shape)?);
    }
    let statistics = tuner.store.statistics();
    assert_eq!((statistics.writes, statistics.hits), (2, 1));
    println!("{} tried, {} from the records", statistics.writes, statistics.hits);
    Ok(())
}
