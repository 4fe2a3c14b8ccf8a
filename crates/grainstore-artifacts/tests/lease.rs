//! A4: what several threads and processes miss at once is made once, and nobody waits for ever.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use grainstore_artifacts::{ArtifactStore, Group, Lease, LookUp, Options};

use common::{group, key};

/// Longer than any test runs: who waits this long never came back.
const FOR_EVER: Duration = Duration::from_secs(3600);
/// The folder that a child process works on; not set in a normal run of the tests.
const FOLDER: &str = "GRAINSTORE_TEST_FOLDER";
/// How many kernels it wants, or none: then it takes one lease and keeps it.
const KERNELS: &str = "GRAINSTORE_TEST_KERNELS";

fn lease(store: &ArtifactStore, number: usize, bound: Duration) -> Lease {
    match store.lookup_or_lease(&key(number), bound).expect("a readable store") {
        LookUp::Lease(lease) => lease,
        LookUp::Hit(_) => panic!("there should be nothing"),
    }
}

/// Asks for every kernel, makes what is missing, and says how many that were.
fn warm(store: &ArtifactStore, kernels: usize) -> usize {
    let mut compiled = 0;
    for number in 0..kernels {
        match store.lookup_or_lease(&key(number), FOR_EVER).expect("a readable store") {
            LookUp::Hit(found) => assert_eq!(found, group()),
            LookUp::Lease(lease) => {
                assert!(lease.is_exclusive());
                store.put(&key(number), &group()).expect("a put");
                compiled += 1;
            }
        }
    }
    compiled
}

fn spawn(folder: &Path, kernels: usize) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(KERNELS, kernels.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process")
}

/// The number that a child said behind this word.
fn number(output: impl Read, word: &str) -> usize {
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let number = lines.find_map(|line| line.split_once(word)?.1.trim().parse().ok());
    number.expect("the child said nothing")
}

#[test]
#[ignore = "the other tests run it, as a process of its own"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let kernels: usize = std::env::var(KERNELS).unwrap().parse().unwrap();
    let store = ArtifactStore::open(folder).unwrap();
    if kernels == 0 {
        let lease = lease(&store, 0, FOR_EVER);
        println!("leased {}", usize::from(lease.is_exclusive()));
        // Until it is killed.
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    println!("compiled {}", warm(&store, kernels));
}

#[test]
fn a4_threads_that_miss_at_once_make_it_once() {
    const THREADS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let compiled = AtomicUsize::new(0);
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let store = ArtifactStore::open(folder.path()).unwrap();
                barrier.wait();
                compiled.fetch_add(warm(&store, 40), Relaxed);
            });
        }
    });
    assert_eq!(compiled.into_inner(), 40);
}

#[test]
fn a4_processes_that_miss_at_once_make_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..8).map(|_| spawn(folder.path(), 100)).collect();
    let mut compiled = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        compiled += number(&output.stdout[..], "compiled");
    }
    assert_eq!(compiled, 100);
}

#[test]
fn a4_who_dies_releases_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    let mut child = spawn(folder.path(), 0);
    assert_eq!(number(child.stdout.take().unwrap(), "leased"), 1);
    assert!(!lease(&store, 0, Duration::ZERO).is_exclusive());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| lease(&store, 0, FOR_EVER));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(waiting.join().unwrap().is_exclusive());
    });
}

#[test]
fn a4_waiting_is_bounded_and_then_everybody_makes_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    let first = lease(&store, 0, FOR_EVER);
    assert!(first.is_exclusive());
    let second = lease(&store, 0, Duration::from_millis(20));
    assert!(!second.is_exclusive());
    // Dropping the one that is not exclusive takes nothing from the other.
    drop(second);
    assert!(!lease(&store, 0, Duration::ZERO).is_exclusive());
    drop(first);
    assert!(lease(&store, 0, Duration::ZERO).is_exclusive());
    assert_eq!(store.statistics().hits, 0);
    assert_eq!(store.statistics().misses, 4);
}

#[test]
fn a4_who_waited_finds_what_was_put() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    let first = lease(&store, 0, FOR_EVER);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| store.lookup_or_lease(&key(0), FOR_EVER).unwrap());
        store.put(&key(0), &group()).unwrap();
        drop(first);
        assert!(matches!(waiting.join().unwrap(), LookUp::Hit(found) if found == group()));
    });
}

#[test]
fn a4_what_one_could_not_make_the_others_try_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    // Whoever comes when it is released already has waited for nobody: then once more.
    while store.statistics().waited == 0 {
        let first = lease(&store, 0, FOR_EVER);
        thread::scope(|scope| {
            let second = scope.spawn(|| lease(&store, 0, FOR_EVER));
            thread::yield_now();
            drop(first);
            let second = second.join().unwrap();
            assert_eq!(second.is_exclusive(), store.statistics().waited == 0);
        });
    }
    assert!(lease(&store, 0, Duration::ZERO).is_exclusive());
}

#[test]
fn a4_keys_do_not_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    // A thread may hold many at once: kernels that need other kernels.
    let leases: Vec<_> = (0..500).map(|number| lease(&store, number, FOR_EVER)).collect();
    assert!(leases.iter().all(Lease::is_exclusive));
}

#[test]
fn a4_a_lease_that_is_too_old_is_waited_for_no_longer() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    let forgotten = lease(&store, 0, FOR_EVER);
    let impatient = Options::new().lease_age(Duration::ZERO).open(folder.path()).unwrap();
    assert!(!lease(&impatient, 0, FOR_EVER).is_exclusive());
    drop(forgotten);
}

#[test]
fn a4_without_locks_everything_works_only_less_shared() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    // Nothing can be locked, as on a file system that has no locks.
    for name in ["locks", "lock"] {
        fs::create_dir(folder.path().join("v1").join(name)).unwrap();
    }
    for _ in 0..2 {
        assert!(!lease(&store, 0, FOR_EVER).is_exclusive());
    }
    store.put(&key(0), &group()).unwrap();
    assert!(matches!(store.lookup_or_lease(&key(0), FOR_EVER).unwrap(), LookUp::Hit(_)));
    assert_eq!(store.prune(0).unwrap().removed, 1);
}

#[test]
fn a4_a_folder_deleted_under_a_lease_is_only_less_shared() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("store");
    let store = ArtifactStore::open(&place).unwrap();
    let first = lease(&store, 0, FOR_EVER);
    fs::remove_dir_all(&place).unwrap();
    let _not_exclusive_perhaps = lease(&store, 1, FOR_EVER);
    store.put(&key(0), &group()).unwrap();
    drop(first);
    assert!(matches!(store.lookup_or_lease(&key(0), FOR_EVER).unwrap(), LookUp::Hit(_)));
}

#[test]
fn a4_broken_artifacts_are_made_anew_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &Group::new("k", vec![1])).unwrap();
    fs::write(store.file(&key(0)), "").unwrap();
    assert!(lease(&store, 0, FOR_EVER).is_exclusive());
    assert_eq!(store.statistics().rejected, [("empty", 1)]);
}
