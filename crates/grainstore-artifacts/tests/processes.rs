//! A1 and A7 among threads and processes: nobody ever sees half an artifact, whoever dies when.
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use grainstore_artifacts::{ArtifactStore, Found, Group};

use common::key;

/// The folder that a child process works on; not set in a normal run of the tests.
const FOLDER: &str = "GRAINSTORE_TEST_FOLDER";
/// How often it puts; 0 means until it is killed.
const PUTS: &str = "GRAINSTORE_TEST_PUTS";
const KEYS: usize = 3;
const LENGTH: usize = 100_000;

/// Bytes that tell a mix of two writers' from one writer's.
fn tagged(tag: u8) -> Group {
    Group::new("tagged", vec![tag; LENGTH])
}

/// What is found, whole and of one writer.
fn read_whole(store: &ArtifactStore, number: usize) -> Option<u8> {
    match store.find(&key(number)).expect("a readable store") {
        Found::Group(group) => {
            let bytes = group.binary();
            assert_eq!(bytes.len(), LENGTH);
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "bytes of two writers in one file");
            Some(bytes[0])
        }
        Found::Nothing => None,
        other => panic!("half an artifact: {other:?}"),
    }
}

/// Another process that runs [`child`].
fn spawn(folder: &Path, puts: usize) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(PUTS, puts.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process")
}

#[test]
#[ignore = "the other tests run it, as a process of its own"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let puts: usize = std::env::var(PUTS).unwrap().parse().unwrap();
    let store = ArtifactStore::open(folder).unwrap();
    let tag = (std::process::id() % 251) as u8;
    let mut done = 0;
    while puts == 0 || done < puts {
        store.put(&key(done % KEYS), &tagged(tag.wrapping_add(done as u8))).unwrap();
        // One that is to be killed only writes, so that it is a write that is hit.
        for number in (0..KEYS).filter(|_| puts > 0) {
            read_whole(&store, number);
        }
        done += 1;
        println!("put {done}");
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn a1_threads_that_write_one_key_at_once_leave_one_of_them() {
    const THREADS: u8 = 8;
    const PUTS: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    let barrier = Barrier::new(THREADS.into());
    thread::scope(|scope| {
        for tag in 0..THREADS {
            let (store, barrier) = (store.clone(), &barrier);
            scope.spawn(move || {
                barrier.wait();
                for _ in 0..PUTS {
                    store.put(&key(0), &tagged(tag)).unwrap();
                    assert!(read_whole(&store, 0).unwrap() < THREADS);
                }
            });
        }
    });
    assert_eq!(store.statistics().writes, u64::from(THREADS) * PUTS as u64);
    assert_eq!(store.statistics().rejected, []);
    assert_eq!(fs::read_dir(folder.path().join("v1/tmp")).unwrap().count(), 0);
}

#[test]
fn a1_processes_that_write_one_key_at_once_leave_one_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..4).map(|_| spawn(folder.path(), 30)).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let store = ArtifactStore::open(folder.path()).unwrap();
    assert!((0..KEYS).all(|number| read_whole(&store, number).is_some()));
    assert_eq!(fs::read_dir(folder.path().join("v1/tmp")).unwrap().count(), 0);
}

#[test]
fn a7_a_writer_killed_at_any_instant_loses_nothing_and_breaks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    for round in 0..60 {
        let mut child = spawn(folder.path(), 0);
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut reports =
            output.lines().map_while(Result::ok).filter(|line| line.starts_with("put"));
        assert_eq!(reports.by_ref().take(KEYS).count(), KEYS, "the child died by itself");
        // All it kept is committed. Now whatever it is doing some moments later: a put takes less
        // than a millisecond, and each round hits it somewhere else.
        let moments = Duration::from_micros(round * 37 % 60 * 20);
        let begin = Instant::now();
        while begin.elapsed() < moments {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().code(), None, "the child died by itself");
        // Only now: a child whose output is closed ends in an orderly way.
        drop(reports);
        for number in 0..KEYS {
            assert!(read_whole(&store, number).is_some(), "a committed artifact is gone");
        }
    }
    assert_eq!(store.statistics().rejected, []);
    let unfinished = fs::read_dir(folder.path().join("v1/tmp")).unwrap().count();
    eprintln!("60 kills left {unfinished} unfinished files");
}
