//! R6: what ends the process when it is loaded is noticed, and after the second time not handed out.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use grainstore_artifacts::{ArtifactStore, Error};

use common::{group, key};

/// The folder that a child process works on; not set in a normal run of the tests.
const FOLDER: &str = "GRAINSTORE_TEST_FOLDER";

/// A process that loads the artifact of key 0 (and came back from loading that of key 1), and waits
/// to be killed.
fn loads(folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    assert!(output.lines().map_while(Result::ok).any(|line| line.ends_with("loading")));
    child
}

fn crash(folder: &Path) {
    let mut child = loads(folder);
    child.kill().expect("to be killed");
    child.wait().expect("to be dead");
}

#[test]
#[ignore = "the other tests run it, as a process of its own"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = ArtifactStore::open(folder).unwrap();
    assert!(store.get(&key(0)).unwrap().is_some());
    drop(store.loading(&key(1)).unwrap());
    let _mark = store.loading(&key(0)).unwrap();
    println!("loading");
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn stored(folder: &Path) -> ArtifactStore {
    let store = ArtifactStore::open(folder).expect("a store");
    for number in 0..2 {
        store.put(&key(number), &group()).expect("a put");
    }
    store
}

fn journals(folder: &Path) -> usize {
    fs::read_dir(folder.join("v1/loading")).map_or(0, Iterator::count)
}

#[test]
fn r6_what_ended_the_process_twice_is_quarantined_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path());
    crash(folder.path());
    let store = ArtifactStore::open(folder.path()).unwrap();
    assert_eq!(store.statistics().crashes, 1);
    assert!(store.get(&key(0)).unwrap().is_some(), "once may be chance");
    drop(store);
    crash(folder.path());
    for _ in 0..2 {
        let store = ArtifactStore::open(folder.path()).unwrap();
        let error = store.get(&key(0)).unwrap_err();
        assert!(matches!(error, Error::Quarantined { .. }), "{error}");
        assert!(error.to_string().contains("remove"), "{error}");
        assert!(store.get(&key(1)).unwrap().is_some(), "its loader came back");
    }
    assert_eq!(journals(folder.path()), 0);
    #[cfg(feature = "runtime")]
    {
        use grainstore_runtime::{Artifact, BuildFacts, Store};
        let opened = ArtifactStore::open(folder.path()).unwrap();
        let (store, file): (&dyn Store, _) = (&opened, opened.file(&key(0)));
        assert!(store.get(&key(0)).unwrap_err().withholds(), "the store itself works");
        let before = fs::read(&file).unwrap();
        let afresh = Artifact::new("kernel.so", b"compiled afresh".to_vec());
        store.put(&key(0), &afresh, &BuildFacts::default()).unwrap();
        assert_eq!(fs::read(&file).unwrap(), before, "what is not handed out is not put");
    }
    assert_eq!(ArtifactStore::open(folder.path()).unwrap().overall_statistics().crashes, 2);
}

#[test]
fn r6_a_load_that_comes_back_forgives() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path());
    crash(folder.path());
    let store = ArtifactStore::open(folder.path()).unwrap();
    drop(store.loading(&key(0)).unwrap());
    drop(store);
    crash(folder.path());
    let store = ArtifactStore::open(folder.path()).unwrap();
    assert!(store.get(&key(0)).unwrap().is_some(), "two crashes with a good load between");
}

#[test]
fn r6_a_live_loader_in_another_process_is_no_crash() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path());
    let mut child = loads(folder.path());
    for _ in 0..5 {
        let store = ArtifactStore::open(folder.path()).unwrap();
        assert_eq!(store.statistics().crashes, 0);
        // Nor is one in this process, which has the store open twice.
        let _mark = store.loading(&key(1)).unwrap();
        assert_eq!(ArtifactStore::open(folder.path()).unwrap().statistics().crashes, 0);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ArtifactStore::open(folder.path()).unwrap().statistics().crashes, 1);
}

#[test]
fn r6_removing_the_artifact_or_clearing_the_store_forgets() {
    for clear in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        stored(folder.path());
        crash(folder.path());
        crash(folder.path());
        let store = ArtifactStore::open(folder.path()).unwrap();
        assert!(store.get(&key(0)).is_err());
        if clear {
            store.clear().unwrap();
        } else {
            store.remove(&key(0)).unwrap();
        }
        assert_eq!(store.get(&key(0)).unwrap(), None);
        store.put(&key(0), &group()).unwrap();
        assert!(store.get(&key(0)).unwrap().is_some());
        assert!(ArtifactStore::open(folder.path()).unwrap().get(&key(0)).unwrap().is_some());
    }
}

#[test]
fn r6_many_loads_at_once_are_noted_and_those_beyond_are_not_watched() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    let marks: Vec<_> = (0..100).map_while(|number| store.loading(&key(number))).collect();
    assert_eq!(marks.len(), 64);
    drop(marks);
    assert!(store.loading(&key(0)).is_some());
    assert_eq!(journals(folder.path()), 1);
    drop(store);
    assert_eq!(journals(folder.path()), 0, "an orderly end leaves nothing");
}

#[test]
fn r6_where_nothing_can_be_noted_loads_are_not_watched() {
    let folder = tempfile::tempdir().unwrap();
    let store = stored(folder.path());
    fs::write(folder.path().join("v1/loading"), "in the way").unwrap();
    assert!(store.loading(&key(0)).is_none());
    assert!(ArtifactStore::open(folder.path()).unwrap().get(&key(0)).unwrap().is_some());
}
