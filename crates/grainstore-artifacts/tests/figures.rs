//! The figures over all processes.
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs;
use std::time::Duration;

use grainstore_artifacts::{ArtifactStore, Options, Statistics};

use common::{group, key};

#[test]
fn figures_are_added_up_over_everybody_who_had_the_store_open() {
    let folder = tempfile::tempdir().unwrap();
    let open = || ArtifactStore::open(folder.path()).unwrap();
    for number in 0..3 {
        // One after the other, as processes would.
        let store = open();
        assert_eq!(store.statistics().hits, 0);
        assert_eq!(store.get(&key(number)).unwrap(), None);
        store.put(&key(number), &group()).unwrap();
        store.get(&key(number)).unwrap().unwrap();
        fs::write(store.file(&key(number)), "broken").unwrap();
        assert_eq!(store.get(&key(number)).unwrap(), None);
    }
    let overall = open().overall_statistics();
    assert_eq!((overall.hits, overall.misses, overall.writes), (3, 6, 3));
    assert_eq!(overall.rejected, [("not-an-artifact", 3)]);
    assert_eq!(overall.saved, Duration::from_millis(90));
    assert_eq!(overall.compile_time, Duration::from_millis(90));
}

#[test]
fn what_came_from_a_bundle_is_counted_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let first = ArtifactStore::open(folder.path().join("first")).unwrap();
    for number in 0..3 {
        first.put(&key(number), &group()).unwrap();
    }
    let bundle = folder.path().join("bundle");
    first.pack(&bundle, |_| true).unwrap();

    let path = folder.path().join("second");
    let second = ArtifactStore::open(&path).unwrap();
    second.put(&key(0), &group()).unwrap();
    second.put(&key(1), &group()).unwrap();
    // One that is there and one that replaces what is broken, beside one that is new.
    fs::write(second.file(&key(1)), "broken").unwrap();
    second.unpack(&bundle).unwrap();
    drop(second);
    let overall = ArtifactStore::open(&path).unwrap().overall_statistics();
    assert_eq!((overall.writes, overall.imported), (2, 2));
    assert_eq!(overall.compile_time, Duration::from_millis(60));
    assert_eq!(overall.rejected, []);

    // Its place is behind those that older stores have, as the format says.
    let file = fs::read(path.join("v1/figures")).unwrap();
    let numbers: Vec<_> = file.chunks_exact(8).map(|number| number[0]).collect();
    assert_eq!((numbers[4], numbers[23], numbers.len()), (2, 2, 24));
}

#[test]
fn who_only_tries_it_leaves_no_figures() {
    let folder = tempfile::tempdir().unwrap();
    let store = Options::new().uncounted().open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    store.get(&key(0)).unwrap().unwrap();
    assert_eq!((store.statistics().writes, store.statistics().hits), (1, 1));
    assert_eq!(store.overall_statistics(), Statistics::default());
    drop(store);
    let overall = ArtifactStore::open(folder.path()).unwrap().overall_statistics();
    assert_eq!(overall, Statistics::default());
}

#[test]
fn asking_twice_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    for hits in 1..4 {
        store.get(&key(0)).unwrap().unwrap();
        assert_eq!(store.overall_statistics().hits, hits);
        assert_eq!(store.overall_statistics().writes, 1);
    }
    drop(store);
    assert_eq!(ArtifactStore::open(folder.path()).unwrap().overall_statistics().hits, 3);
}

#[test]
fn those_who_have_it_open_at_once_lose_nothing_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let store = ArtifactStore::open(folder.path()).unwrap();
                    assert_eq!(store.get(&key(0)).unwrap(), None);
                }
            });
        }
    });
    let overall = ArtifactStore::open(folder.path()).unwrap().overall_statistics();
    assert_eq!(overall.misses, 160);
}

#[test]
fn a_broken_file_of_figures_is_only_wrong_figures() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    for broken in [&b""[..], b"short", &[0xff; 5000]] {
        fs::write(folder.path().join("v1/figures"), broken).unwrap();
        store.get(&key(0)).unwrap().unwrap();
        let _ = store.overall_statistics();
    }
}
