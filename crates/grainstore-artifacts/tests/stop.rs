//! A8: what goes through many artifacts and is stopped leaves nothing half done, wherever that was.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grainstore_artifacts::{ArtifactStore, Error, Options};

use common::{group, key};

const ARTIFACTS: usize = 6;

/// Stops at the first question, then at the second and so on, each time in a fresh place with a full
/// store, until the call comes to its end. Says how often it was stopped.
fn at_every_step<T>(
    call: impl Fn(&ArtifactStore, &Path) -> Result<T, Error>,
    look: impl Fn(&ArtifactStore, &Path),
) -> usize {
    for steps in 0.. {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("store");
        let full = ArtifactStore::open(&path).expect("a store");
        for number in 0..ARTIFACTS {
            full.put(&key(number), &group()).expect("a put");
        }
        let asked = Arc::new(AtomicUsize::new(0));
        let stop = move || asked.fetch_add(1, Ordering::Relaxed) >= steps;
        let store = Options::new().stop_when(stop).open(&path).expect("the store");
        match call(&store, place.path()) {
            Ok(_) => return steps,
            Err(error) => assert!(matches!(error, Error::Stopped), "{error}"),
        }
        let unsound = full.files().filter(|file| file.as_ref().is_ok_and(|it| it.entry.is_err()));
        assert_eq!(unsound.count(), 0, "after {steps} steps");
        look(&full, place.path());
    }
    unreachable!("it was never done")
}

/// Everything in the folder that the store is in.
fn beside(place: &Path) -> Vec<String> {
    let found = fs::read_dir(place).expect("a folder").flatten();
    found.map(|found| found.file_name().to_string_lossy().into_owned()).collect()
}

fn held(store: &ArtifactStore) -> u64 {
    store.files().count() as u64
}

#[test]
fn a8_a_bundle_whose_packing_is_stopped_leaves_nothing() {
    let untouched = |store: &ArtifactStore, place: &Path| {
        assert_eq!(beside(place), ["store"]);
        assert_eq!(held(store), ARTIFACTS as u64);
    };
    let packed = |store: &ArtifactStore, place: &Path| {
        let packed = store.pack(place.join("bundle"), |_| true);
        assert_eq!(packed.is_ok(), place.join("bundle").exists());
        packed
    };
    // Each is looked at, and then written.
    assert_eq!(at_every_step(packed, untouched), 2 * ARTIFACTS);
    let image = |store: &ArtifactStore, place: &Path| {
        store.pack_oci(place.join("image"), "latest", |_| true)
    };
    assert_eq!(at_every_step(image, untouched), 2 * ARTIFACTS);
}

#[test]
fn a8_unpacking_that_is_stopped_keeps_what_it_took_and_goes_on_the_next_time() {
    let other = tempfile::tempdir().expect("a folder");
    let source = ArtifactStore::open(other.path().join("store")).expect("a store");
    for number in 0..2 * ARTIFACTS {
        source.put(&key(number), &group()).expect("a put");
    }
    let bundle = other.path().join("bundle");
    source.pack(&bundle, |_| true).expect("a bundle");
    let steps = at_every_step(
        |store, _| store.unpack(&bundle),
        |store, _| {
            let before = held(store);
            let rest = store.unpack(&bundle).expect("the rest");
            assert_eq!((rest.added, rest.present), (2 * ARTIFACTS as u64 - before, before));
        },
    );
    assert_eq!(steps, 2 * ARTIFACTS);
}

#[test]
fn a8_what_deletes_and_is_stopped_has_counted_what_is_gone_and_goes_on_the_next_time() {
    type Delete = fn(&ArtifactStore) -> Result<u64, Error>;
    let deletes: [(Delete, usize); 3] = [
        // Asked before it begins, then looks at each and removes each.
        (|store| store.prune(0).map(|pruned| pruned.removed), 1 + 2 * ARTIFACTS),
        (|store| store.purge("kernel"), ARTIFACTS),
        (|store| store.clear(), ARTIFACTS),
    ];
    for (delete, expected) in deletes {
        let steps = at_every_step(
            |store, _| {
                let deleted = delete(store);
                let figures = store.statistics();
                assert_eq!(figures.pruned + figures.removed, ARTIFACTS as u64 - held(store));
                deleted
            },
            |store, _| {
                let left = held(store);
                assert_eq!(delete(store).expect("the rest"), left);
                assert_eq!(held(store), 0);
            },
        );
        assert_eq!(steps, expected);
    }
}
