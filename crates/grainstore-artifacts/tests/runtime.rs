//! The store as the runtime sees it.
#![cfg(feature = "runtime")]
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::error::Error as _;
use std::time::Duration;

use grainstore_artifacts::{ArtifactStore, Error};
use grainstore_runtime::{Artifact, BuildFacts, Store};

use common::key;

#[test]
fn r5_an_artifact_goes_through_the_store_whole() {
    let folder = tempfile::tempdir().unwrap();
    let opened = ArtifactStore::open(folder.path()).unwrap();
    let store: &dyn Store = &opened;
    assert_eq!(store.name(), "disk");
    assert_eq!(store.get(&key(0)).unwrap(), None);
    let artifact = Artifact::new("kernel.so", vec![1, 2, 3]).with_member("log", vec![]);
    store.put(&key(0), &artifact, &BuildFacts::took(Duration::from_millis(30))).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(artifact));

    let group = opened.get(&key(0)).unwrap().unwrap();
    assert_eq!(group.compile_time(), Some(Duration::from_millis(30)));
    assert_eq!(group.toolchain(), Some(key(0).toolchain()));
}

#[test]
fn r6_a_discarded_artifact_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let opened = ArtifactStore::open(folder.path()).unwrap();
    let store: &dyn Store = &opened;
    let artifact = Artifact::new("kernel.so", vec![1, 2, 3]);
    store.put(&key(0), &artifact, &BuildFacts::default()).unwrap();
    store.discard(&key(0)).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), None);
    store.discard(&key(0)).unwrap();
}

#[test]
fn r5_an_error_keeps_its_words_and_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let opened = ArtifactStore::open(folder.path()).unwrap();
    let store: &dyn Store = &opened;
    let empty = Artifact::new("kernel.so", vec![]);
    let error = store.put(&key(0), &empty, &BuildFacts::default()).unwrap_err();
    assert!(error.to_string().contains("`kernel.so` is empty"), "{error}");
    let cause = error.source().and_then(|cause| cause.downcast_ref::<Error>());
    assert!(matches!(cause, Some(Error::Refused(_))), "{cause:?}");
}

#[cfg(unix)]
#[test]
fn a6_a_file_that_others_may_write_is_withheld_and_replaced() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let opened = ArtifactStore::open(folder.path()).unwrap();
    let store: &dyn Store = &opened;
    let artifact = Artifact::new("kernel.so", vec![1, 2, 3]);
    store.put(&key(0), &artifact, &BuildFacts::default()).unwrap();
    set_permissions(opened.file(&key(0)), Permissions::from_mode(0o666)).unwrap();
    let error = store.get(&key(0)).unwrap_err();
    assert!(error.withholds(), "{error}");
    store.put(&key(0), &artifact, &BuildFacts::default()).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(artifact));

    // A folder like that is another matter: nothing in the store can be used.
    let private = opened.path().join("v1");
    set_permissions(&private, Permissions::from_mode(0o777)).unwrap();
    let error = store.get(&key(0)).unwrap_err();
    assert!(!error.withholds(), "{error}");
    set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
}
