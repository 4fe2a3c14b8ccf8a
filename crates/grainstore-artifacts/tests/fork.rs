//! A10: the store works on in a forked child, which takes nothing from its parent.
//!
//! A test program of its own, with one test: a child of a process with other threads in it could
//! find any lock of the system's libraries held.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of a test may fail it as the test itself may"
)]

mod common;

use std::fs;
use std::time::Duration;

use grainstore_artifacts::{ArtifactStore, Lease, LookUp};

use common::{group, key};

const FOR_EVER: Duration = Duration::from_secs(3600);

/// Runs this in a forked child, which then ends without running anything of its parent's. Says
/// whether the child said yes.
fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child only runs `check` and leaves by `_exit`; this process runs one test, so no
    // other thread holds a lock that the check needs.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let status = i32::from(!check());
        // SAFETY: it ends the child, and nothing is run on the way.
        unsafe { libc::_exit(status) }
    }
    let mut status = 0;
    // SAFETY: the child is ours, and `status` has room for what the call writes.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status == 0
}

fn lease(store: &ArtifactStore, number: usize, bound: Duration) -> Lease {
    match store.lookup_or_lease(&key(number), bound).unwrap() {
        LookUp::Lease(lease) => lease,
        LookUp::Hit(_) => panic!("there should be nothing"),
    }
}

#[test]
fn a10_a_forked_child_reads_and_writes_and_takes_no_lease_and_no_mark_of_its_parents() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    let mut held = Some(lease(&store, 5, FOR_EVER));
    let mut loading = store.loading(&key(0));
    assert!(held.as_ref().unwrap().is_exclusive() && loading.is_some());
    let journals = || fs::read_dir(folder.path().join("v1/loading")).unwrap().count();
    assert_eq!(journals(), 1);

    assert!(in_child(|| {
        let mut fine = store.get(&key(0)).unwrap() == Some(group());
        store.put(&key(1), &group()).unwrap();
        // The parent's lease is no lease of the child's, and dropping it here releases nothing.
        fine &= !held.as_ref().unwrap().is_exclusive();
        drop(held.take());
        fine &= !lease(&store, 5, Duration::ZERO).is_exclusive();
        fine &= lease(&store, 6, FOR_EVER).is_exclusive();
        // Its loads are its own, in a journal of its own.
        drop(loading.take());
        let own = store.loading(&key(1));
        fine &= own.is_some() && journals() == 2;
        drop(own);
        fine
    }));
    assert_eq!(store.get(&key(1)).unwrap(), Some(group()));
    // What the child held ended with it, what the parent holds did not.
    assert!(lease(&store, 6, Duration::ZERO).is_exclusive());
    let other = ArtifactStore::open(folder.path()).unwrap();
    assert_eq!(other.statistics().crashes, 0);
    assert!(!lease(&other, 5, Duration::ZERO).is_exclusive());
    drop(held);
    assert!(lease(&other, 5, Duration::ZERO).is_exclusive());

    // The figures of the parent are carried once, by the parent.
    let before = other.overall_statistics().hits;
    assert!(in_child(|| {
        drop(store.clone());
        store.overall_statistics().hits == before
    }));
    drop((store, loading));
    assert_eq!(other.overall_statistics().hits, before + 1);
}
