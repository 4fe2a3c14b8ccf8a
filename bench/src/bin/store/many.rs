//! A store of a hundred thousand artifacts: opening it, and pruning it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use grainstore_artifacts::{ArtifactStore, Group, Options};

use crate::turns::median;
use crate::{Result, key};

const ENTRIES: usize = 100_000;
const ROUNDS: usize = 31;

pub(crate) fn run(folder: &Path) -> Result {
    let store = Options::new().unlimited().open(folder)?;
    let small = Group::new("k", vec![7; 100]);
    for number in 0..ENTRIES {
        store.put(&key(number)?, &small)?;
    }
    drop(store);

    let mut openings = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        drop(ArtifactStore::open(folder)?);
        openings.push(began.elapsed());
    }
    let opening = median(openings);
    println!("a store of {ENTRIES} artifacts");
    println!("  to open it: {opening:.1?}{}", judged(opening, Duration::from_millis(5)));

    let store = Options::new().unlimited().open(folder)?;
    let before = peak();
    let looking = timed(|| {
        store.prune(u64::MAX)?;
        Ok(())
    })?;
    println!("  to prune it, where nothing goes: {looking}{}", judged(looking.wall, PRUNE));
    let half = timed(|| match store.prune(ENTRIES as u64 / 2 * 4096)?.removed {
        removed if removed == ENTRIES as u64 / 2 => Ok(()),
        removed => Err(format!("{removed} artifacts were pruned").into()),
    })?;
    println!("  to prune it, where half of it goes: {half}{}", judged(half.wall, PRUNE));
    println!("  memory that pruning took: {} KiB", peak().saturating_sub(before));

    // What the file system asks for the same: the other half, by hand.
    let mut left = 0;
    let plain = timed(|| {
        for found in fs::read_dir(folder.join("v1"))? {
            let found = found?;
            if found.file_name().len() == 2 {
                for file in fs::read_dir(found.path())? {
                    let file = file?;
                    file.metadata()?;
                    fs::remove_file(file.path())?;
                    left += 1;
                }
            }
        }
        Ok(())
    })?;
    println!("  to list, look at and remove {left} files by hand: {plain}");
    Ok(())
}

const PRUNE: Duration = Duration::from_secs(2);

fn judged(time: Duration, goal: Duration) -> String {
    format!("  (goal {goal:?}: {})", if time <= goal { "met" } else { "MISSED" })
}

/// How long something took, and how much of that this thread had a processor.
#[derive(Clone, Copy)]
struct Took {
    wall: Duration,
    processor: Option<Duration>,
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2?}", self.wall)?;
        match self.processor {
            Some(processor) => write!(f, ", {processor:.2?} of it on a processor"),
            None => Ok(()),
        }
    }
}

fn timed(work: impl FnOnce() -> Result) -> Result<Took> {
    let (began, before) = (Instant::now(), on_a_processor());
    work()?;
    let wall = began.elapsed();
    let processor = on_a_processor().zip(before).map(|(after, before)| after - before);
    Ok(Took { wall, processor })
}

/// Where the system tells.
fn on_a_processor() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// This process's memory at its highest, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}
