//! What the store costs, as ratios to plain files in the same run: `cargo bench -p
//! grainstore-artifacts`. Everything is in the page cache; the best of many rounds counts, since
//! whatever else the machine does only adds.

#![allow(clippy::expect_used, reason = "a bench that can't set its scene has nothing to say")]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grainstore::KernelKey;
use grainstore_artifacts::{ArtifactStore, Group, Options};

const ARTIFACTS: usize = 1000;
const SIZE: usize = 64 << 10;
const ENTRIES: usize = 100_000;
const ROUNDS: usize = 15;

fn key(number: usize) -> KernelKey {
    KernelKey::builder(format!("kernel-{number}"))
        .target("sm_90a")
        .toolchain("nvrtc 12.9.86")
        .language("cuda-c++")
        .source("__global__ void kernel() {}")
        .define("BLOCK", "128")
        .build()
        .expect("a key")
}

fn group(number: usize) -> Group {
    let bytes = (0..SIZE).map(|at| (at * 31 + number * 7 + at / 251) as u8).collect::<Vec<_>>();
    Group::new("kernel.cubin", bytes).with_compile_time(Duration::from_millis(30))
}

fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// The best of several rounds of each, taken in turn so that both meet the same machine.
fn best<const N: usize>(mut works: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..ROUNDS {
        for (work, best) in works.iter_mut().zip(&mut best) {
            *best = (*best).min(timed(work));
        }
    }
    best
}

fn each(total: Duration, of: usize) -> f64 {
    total.as_secs_f64() * 1e6 / of as f64
}

fn ratio(what: &str, ours: Duration, plain: Duration, of: usize, goal: f64) {
    let ratio = ours.as_secs_f64() / plain.as_secs_f64();
    let (ours, plain) = (each(ours, of), each(plain, of));
    println!("{what:44} {ours:9.2} us  {plain:9.2} us plain  {ratio:5.2} x  (goal {goal} x)");
}

fn loads(folder: &Path) {
    let store = ArtifactStore::open(folder).expect("a store");
    let keys: Vec<_> = (0..ARTIFACTS).map(key).collect();
    for (number, key) in keys.iter().enumerate() {
        store.put(key, &group(number)).expect("a put");
    }
    let files: Vec<PathBuf> = keys.iter().map(|key| store.file(key)).collect();
    let [ours, runtime, watched, plain] = best([
        &mut || {
            for key in &keys {
                black_box(store.get(key).expect("a store").expect("an artifact"));
            }
        },
        &mut || {
            use grainstore_runtime::Store;
            let store: &dyn Store = &store;
            for key in &keys {
                black_box(store.get(key).expect("a store").expect("an artifact"));
            }
        },
        &mut || {
            for key in &keys {
                let group = store.get(key).expect("a store").expect("an artifact");
                let mark = store.loading(key);
                black_box(&group);
                drop(mark);
            }
        },
        &mut || {
            for file in &files {
                let bytes = fs::read(file).expect("a file");
                black_box(blake3::hash(&bytes));
            }
        },
    ]);
    ratio("load 64 KiB: verified group", ours, plain, ARTIFACTS, 1.15);
    ratio("load 64 KiB: as the runtime gets it", runtime, plain, ARTIFACTS, 1.15);
    ratio("load 64 KiB: and watched while it is loaded", watched, plain, ARTIFACTS, 1.15);
}

fn puts(folder: &Path) {
    let store = ArtifactStore::open(folder.join("store")).expect("a store");
    let keys: Vec<_> = (0..ARTIFACTS / 4).map(key).collect();
    let groups: Vec<_> = (0..ARTIFACTS / 4).map(group).collect();
    let plain = folder.join("plain");
    fs::create_dir(&plain).expect("a folder");
    let mut encoded = Vec::new();
    for (key, group) in keys.iter().zip(&groups) {
        encoded.push(grainstore_artifacts::encode(key, group).expect("a file"));
    }
    let [ours, theirs] = best([
        &mut || {
            for (key, group) in keys.iter().zip(&groups) {
                store.put(key, group).expect("a put");
            }
        },
        &mut || {
            for (number, bytes) in encoded.iter().enumerate() {
                let unfinished = plain.join(format!("{number}.tmp"));
                fs::write(&unfinished, bytes).expect("to be written");
                fs::rename(unfinished, plain.join(number.to_string())).expect("to be renamed");
            }
        },
    ]);
    ratio("put 64 KiB (nothing is synced in either)", ours, theirs, keys.len(), 1.5);
}

/// This process's memory at its highest, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}

fn many(folder: &Path) {
    let store = Options::new().unlimited().open(folder).expect("a store");
    let small = Group::new("k", vec![7; 100]);
    for number in 0..ENTRIES {
        store.put(&key(number), &small).expect("a put");
    }
    drop(store);
    let opening =
        (0..ROUNDS).map(|_| timed(|| drop(ArtifactStore::open(folder).expect("a store"))));
    let opening = opening.min().unwrap_or_default();
    println!("open a store of {ENTRIES} entries: {opening:.1?}  (goal under 5 ms)");
    let store = Options::new().unlimited().open(folder).expect("a store");
    let before = peak();
    let scan = timed(|| {
        let _ = store.prune(u64::MAX).expect("to be pruned");
    });
    let half = timed(|| {
        let pruned = store.prune(ENTRIES as u64 / 2 * 4096).expect("to be pruned");
        assert_eq!(pruned.removed, ENTRIES as u64 / 2);
    });
    let grown = peak() - before;
    println!(
        "prune {ENTRIES} entries: {scan:.1?} where nothing goes, {half:.1?} where half of them go, \
         {grown} KiB of memory  (goal under 2 s, memory flat)"
    );
}

fn main() {
    // `cargo test --benches` runs this too, and wants no figures.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, part) in [("loads", loads as fn(&Path)), ("puts", puts), ("many", many)] {
        let place = folder.path().join(name);
        fs::create_dir(&place).expect("a folder");
        part(&place);
        fs::remove_dir_all(&place).expect("to be removed");
    }
}
