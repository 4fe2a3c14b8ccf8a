//! A3: a store stays within its bound, and what was used last stays longest.
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, SystemTime};

use grainstore_artifacts::{ArtifactStore, Found, Group, Options};

use common::{group, key};

const MINUTE: Duration = Duration::from_secs(60);
const KIB: usize = 1024;

fn marked(file: &Path) -> SystemTime {
    fs::metadata(file).expect("a file").modified().expect("a time")
}

fn mark(file: &Path, time: SystemTime) {
    File::options().append(true).open(file).expect("a file").set_modified(time).expect("to be set");
}

fn ago(minutes: u32) -> SystemTime {
    SystemTime::now() - MINUTE * minutes
}

fn of_size(kib: usize) -> Group {
    Group::new("k", vec![7; kib * KIB])
}

/// What all artifacts take on disk.
#[cfg(unix)]
fn on_disk(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut total = 0;
    for folder in fs::read_dir(folder.join("v1")).expect("a store").flatten() {
        if folder.file_name().len() == 2 {
            let files = fs::read_dir(folder.path()).expect("a folder");
            total += files
                .flatten()
                .map(|file| file.metadata().map_or(0, |m| m.blocks() * 512))
                .sum::<u64>();
        }
    }
    total
}

/// Which of these keys are there.
fn there(store: &ArtifactStore, keys: std::ops::Range<usize>) -> Vec<usize> {
    keys.filter(|number| store.file(&key(*number)).exists()).collect()
}

#[test]
#[cfg(unix)]
fn a3_puts_keep_the_store_within_its_limit_and_the_oldest_go() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 1024 * KIB as u64;
    let store = Options::new().limit(limit).open(folder.path()).unwrap();
    for number in 0..60 {
        store.put(&key(number), &of_size(60)).unwrap();
        mark(&store.file(&key(number)), ago(1000 - 10 * number as u32));
        assert!(on_disk(folder.path()) <= limit);
    }
    let there = there(&store, 0..60);
    assert!(there.len() >= 13, "more was pruned than had to be: {there:?}");
    assert!(there.iter().copied().eq(60 - there.len()..60), "{there:?}");
    assert_eq!(store.statistics().pruned, 60 - there.len() as u64);
}

#[test]
fn a3_what_was_used_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    for number in 0..8 {
        store.put(&key(number), &of_size(60)).unwrap();
        mark(&store.file(&key(number)), ago(500 - 10 * number as u32));
    }
    for number in [0, 3] {
        assert!(store.get(&key(number)).unwrap().is_some());
    }
    let pruned = store.prune(5 * 64 * KIB as u64).unwrap();
    assert_eq!((pruned.kept, pruned.removed), (5, 3));
    assert_eq!(pruned.removed_bytes, 3 * 64 * KIB as u64);
    assert_eq!(there(&store, 0..8), [0, 3, 5, 6, 7]);
    assert_eq!(store.prune(0).unwrap().removed, 5);
    assert_eq!(store.get(&key(7)).unwrap(), None);
}

#[test]
fn a3_a_mark_is_renewed_once_an_hour_and_no_oftener() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    let file = store.file(&key(0));
    let use_it = |time| {
        mark(&file, time);
        store.get(&key(0)).unwrap().unwrap();
        marked(&file)
    };
    let recent = ago(50);
    assert_eq!(use_it(recent), recent);
    assert!(use_it(ago(70)) > ago(5));
    // The clock was set back: that mark would keep the artifact for ever.
    let future = SystemTime::now() + MINUTE * 70;
    assert!(use_it(future) < SystemTime::now() + MINUTE);
}

#[test]
fn a3_marks_from_the_future_are_put_right_by_pruning() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &of_size(60)).unwrap();
    let file = store.file(&key(0));
    mark(&file, SystemTime::now() + MINUTE * 10_000);
    assert_eq!(store.prune(1 << 20).unwrap().kept, 1);
    assert!(marked(&file) < SystemTime::now() + MINUTE);
}

#[test]
fn a3_what_others_left_there_goes_like_an_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &of_size(60)).unwrap();
    let orphan = store.file(&key(0)).with_file_name("orphan");
    let earlier = folder.path().join("v999/00");
    let unrelated = folder.path().join("notes.txt");
    fs::create_dir_all(&earlier).unwrap();
    let earlier = earlier.join("of-an-earlier-version.grain");
    for file in [&orphan, &earlier, &unrelated] {
        fs::write(file, vec![1; 60 * KIB]).unwrap();
        mark(file, ago(100));
    }
    let pruned = store.prune(100 * KIB as u64).unwrap();
    assert_eq!((pruned.kept, pruned.removed), (1, 2));
    assert!(!orphan.exists() && !earlier.exists() && unrelated.exists());
    assert!(store.get(&key(0)).unwrap().is_some());
}

#[test]
#[cfg(unix)]
fn a3_a_store_that_nobody_counted_is_counted_at_the_first_put() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 256 * KIB as u64;
    let grown = Options::new().unlimited().open(folder.path()).unwrap();
    for number in 0..20 {
        grown.put(&key(number), &of_size(60)).unwrap();
        mark(&grown.file(&key(number)), ago(1000 - number as u32 * 10));
    }
    assert_eq!(there(&grown, 0..20).len(), 20);
    let store = Options::new().limit(limit).open(folder.path()).unwrap();
    store.put(&key(20), &of_size(60)).unwrap();
    assert!(on_disk(folder.path()) <= limit);
    assert!(store.get(&key(20)).unwrap().is_some());
}

#[test]
#[cfg(unix)]
fn a3_one_artifact_larger_than_the_limit_is_not_kept_and_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = Options::new().limit(64 * KIB as u64).open(folder.path()).unwrap();
    store.put(&key(0), &of_size(200)).unwrap();
    assert_eq!(on_disk(folder.path()), 0);
    store.put(&key(1), &of_size(30)).unwrap();
    assert!(store.get(&key(1)).unwrap().is_some());
}

#[test]
#[cfg(unix)]
fn a3_many_that_write_read_and_prune_at_once_stay_whole_and_bounded() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 120;
    let folder = tempfile::tempdir().unwrap();
    let limit = 512 * KIB as u64;
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (barrier, folder) = (&barrier, folder.path());
            scope.spawn(move || {
                // One of its own for each, as if each were a process.
                let store = Options::new().limit(limit).open(folder).unwrap();
                barrier.wait();
                for round in 0..ROUNDS {
                    let number = (round * 7 + thread * 13) % 40;
                    match store.find(&key(number)).unwrap() {
                        Found::Group(found) => assert_eq!(found, of_size(28)),
                        Found::Nothing => store.put(&key(number), &of_size(28)).unwrap(),
                        other => panic!("{other:?}"),
                    }
                    if round % 40 == thread {
                        store.prune(limit / 2).unwrap();
                    }
                    if let Err(error) = store.remove(&key(number + 1)) {
                        panic!("{error}");
                    }
                }
            });
        }
    });
    let store = Options::new().limit(limit).open(folder.path()).unwrap();
    store.prune(limit).unwrap();
    assert!(on_disk(folder.path()) <= limit);
    assert_eq!(fs::read_dir(folder.path().join("v1/tmp")).unwrap().count(), 0);
}
