//! A9 and A10: the store by itself, under keys of any kind.
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, SystemTime};

use grainstore::{ElementType, PlanKey, TensorDesc};
use grainstore_artifacts::{ArtifactStore, Error, Fault, ForeignKey, Found, Group, Rejection};
use tempfile::TempDir;

use common::{group, key};

fn store() -> (TempDir, ArtifactStore) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ArtifactStore::open(folder.path()).expect("a store");
    (folder, store)
}

fn foreign(namespace: &str, bytes: &[u8]) -> ForeignKey {
    ForeignKey::new(namespace, bytes).expect("a key")
}

fn numbered(number: u8) -> Group {
    Group::new("k", vec![number])
}

#[test]
fn a9_foreign_keys_keep_what_is_theirs_apart() {
    let (_folder, store) = store();
    let keys =
        [foreign("one", b"x"), foreign("two", b"x"), foreign("one", b"y"), foreign("onex", b"")];
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(store.get(key).unwrap(), None);
        store.put(key, &numbered(number as u8 + 1)).unwrap();
    }
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(store.get(key).unwrap(), Some(numbered(number as u8 + 1)));
    }
}

#[test]
fn a9_what_is_said_beside_a_foreign_key_is_no_part_of_it() {
    let (_folder, store) = store();
    let key = foreign("tuner", b"matmul 128");
    store.put(&key, &numbered(1).with_metadata(serde_json::json!({ "tried": 3 }))).unwrap();
    assert!(store.get(&foreign("tuner", b"matmul 128")).unwrap().is_some());
}

#[test]
fn a9_plans_are_kept_like_kernels() {
    let (_folder, store) = store();
    let tensor = TensorDesc::contiguous(ElementType::F16, &[4, 4]).unwrap();
    let plan = |size: &str| {
        let builder = PlanKey::builder().artifact("sha256:1").specialization(size);
        builder.input(tensor.clone()).output(tensor.clone()).build().unwrap()
    };
    store.put(&plan("64"), &numbered(1)).unwrap();
    assert_eq!(store.get(&plan("64")).unwrap(), Some(numbered(1)));
    assert_eq!(store.get(&plan("32")).unwrap(), None);
    assert_eq!(store.scan("plan").count(), 1);
}

#[test]
fn a10_put_if_absent_gives_what_was_there() {
    let (_folder, store) = store();
    assert_eq!(store.put_if_absent(&key(0), &numbered(1)).unwrap(), None);
    assert_eq!(store.put_if_absent(&key(0), &numbered(2)).unwrap(), Some(numbered(1)));
    assert_eq!(store.get(&key(0)).unwrap(), Some(numbered(1)));
    fs::write(store.file(&key(0)), "broken").unwrap();
    assert_eq!(store.put_if_absent(&key(0), &numbered(3)).unwrap(), None);
    assert_eq!(store.get(&key(0)).unwrap(), Some(numbered(3)));
    assert!(matches!(store.put_if_absent(&key(1), &Group::default()), Err(Error::Refused(_))));
}

#[test]
fn a10_of_many_that_put_if_absent_one_does_and_all_agree() {
    const THREADS: u8 = 8;
    let (folder, store) = store();
    let barrier = Barrier::new(THREADS.into());
    for round in 0..40 {
        let outcomes: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|number| {
                    let (store, barrier) = (&store, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        let found = store.put_if_absent(&key(round), &numbered(number)).unwrap();
                        (number, found)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let kept = store.get(&key(round)).unwrap().unwrap();
        let winners: Vec<_> = outcomes
            .iter()
            .filter(|(_, found)| found.is_none())
            .map(|(number, _)| *number)
            .collect();
        assert_eq!(winners, [kept.binary()[0]]);
        assert!(outcomes.iter().flat_map(|(_, found)| found).all(|found| *found == kept));
    }
    assert_eq!(fs::read_dir(folder.path().join("v1/tmp")).unwrap().count(), 0);
}

#[test]
fn a10_replace_keeps_nothing_where_there_is_nothing() {
    let (_folder, store) = store();
    assert_eq!(store.replace(&key(0), &numbered(1)).unwrap(), None);
    assert_eq!(store.get(&key(0)).unwrap(), None);
    store.put(&key(0), &numbered(1)).unwrap();
    assert_eq!(store.replace(&key(0), &numbered(2)).unwrap(), Some(numbered(1)));
    assert_eq!(store.get(&key(0)).unwrap(), Some(numbered(2)));
}

#[test]
fn a10_touch_marks_as_used_just_now() {
    let (_folder, store) = store();
    assert!(!store.touch(&key(0)).unwrap());
    store.put(&key(0), &group()).unwrap();
    let file = fs::File::options().append(true).open(store.file(&key(0))).unwrap();
    let now = SystemTime::now();
    file.set_modified(now - Duration::from_secs(600)).unwrap();
    assert!(store.touch(&key(0)).unwrap());
    let marked = file.metadata().unwrap().modified().unwrap();
    assert!(marked > now - Duration::from_secs(60));
}

#[test]
fn a10_scan_gives_a_namespace_and_purge_removes_it() {
    let (_folder, store) = store();
    for number in 0..5 {
        store.put(&foreign("tuner", &[number]), &numbered(number)).unwrap();
        store.put(&key(number.into()), &group()).unwrap();
    }
    fs::write(store.file(&foreign("tuner", &[4])), "broken").unwrap();
    let mut found: Vec<_> =
        store.scan("tuner").map(|entry| entry.unwrap().group().binary()[0]).collect();
    found.sort_unstable();
    assert_eq!(found, [0, 1, 2, 3]);
    assert_eq!(store.scan("kernel").count(), 5);
    assert_eq!(store.scan("nobody").count(), 0);
    assert_eq!(store.purge("tuner").unwrap(), 4);
    assert_eq!(store.scan("tuner").count(), 0);
    assert_eq!(store.scan("kernel").count(), 5);
    assert_eq!(store.clear().unwrap(), 6, "the broken one too");
    assert_eq!(store.files().count(), 0);
}

#[test]
fn a10_files_are_all_looked_at_and_looking_marks_nothing() {
    let (_folder, store) = store();
    for number in 0..4 {
        store.put(&key(number), &group()).unwrap();
    }
    let old = SystemTime::now() - Duration::from_secs(100 * 3600);
    let file = |number| store.file(&key(number));
    fs::File::options().append(true).open(file(0)).unwrap().set_modified(old).unwrap();
    fs::write(file(1), "broken").unwrap();
    fs::rename(file(2), file(2).with_file_name("stray.grain")).unwrap();
    fs::copy(file(0), file(3)).unwrap();

    let scanned: Vec<_> = store.files().map(Result::unwrap).collect();
    assert_eq!(scanned.len(), 4);
    let of =
        |path: &Path| scanned.iter().find(|scanned| scanned.path == path).expect("to be there");
    assert_eq!(of(&file(0)).entry.as_ref().unwrap().fingerprint(), key(0).fingerprint());
    assert!(of(&file(0)).used < old + Duration::from_secs(1));
    let rejected = |path: &Path| match &of(path).entry {
        Err(Fault::Rejected(rejection)) => rejection.name(),
        other => panic!("{other:?}"),
    };
    assert_eq!(rejected(&file(1)), "not-an-artifact");
    assert_eq!(rejected(&file(2).with_file_name("stray.grain")), "not-an-artifact");
    assert_eq!(rejected(&file(3)), "fingerprint");
    assert!(matches!(store.find(&key(3)).unwrap(), Found::Rejected(Rejection::Fingerprint { .. })));
}

fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file"));
    let mut contents: Vec<_> = files
        .map(|file| {
            (file.file_name().into_string().expect("a name"), fs::read(file.path()).expect("bytes"))
        })
        .collect();
    contents.sort();
    contents
}

#[test]
fn a10_materialize_fills_a_folder_in_one_step() {
    let (folder, store) = store();
    store.put(&key(0), &group()).unwrap();
    let expected: Vec<_> =
        group().members().iter().rev().map(|m| (m.name.clone(), m.bytes.to_vec())).collect();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for output in [folder.path().join("deep/new"), empty] {
        let paths = store.materialize(&key(0), &output).unwrap().unwrap();
        assert_eq!(paths, [output.join("kernel.so"), output.join("kernel.c")]);
        assert_eq!(contents(&output), expected);
    }
    assert_eq!(contents(&folder.path().join("deep/new")).len(), 2);
    let beside = fs::read_dir(folder.path().join("deep")).unwrap().count();
    assert_eq!(beside, 1, "nothing unfinished is left");
    assert_eq!(store.materialize(&key(1), folder.path().join("no")).unwrap(), None);
    assert!(!folder.path().join("no").exists());
}

#[test]
fn a10_materialize_into_a_folder_in_use_replaces_members_and_nothing_else() {
    let (folder, store) = store();
    store.put(&key(0), &group()).unwrap();
    let output = folder.path().join("output");
    fs::create_dir(&output).unwrap();
    fs::write(output.join("kernel.so"), "old").unwrap();
    fs::write(output.join("theirs"), "kept").unwrap();
    store.materialize(&key(0), &output).unwrap().unwrap();
    let contents = contents(&output);
    assert_eq!(contents.len(), 3);
    assert_eq!(contents[1].1, group().binary());
    assert_eq!(contents[2], ("theirs".into(), b"kept".to_vec()));
    // A file in the folder's place is an error, and is left as it is.
    let file = output.join("theirs");
    assert!(matches!(store.materialize(&key(0), &file), Err(Error::Io { .. })));
    assert_eq!(fs::read(&file).unwrap(), b"kept");
}

#[test]
fn a10_many_that_materialize_at_once_leave_whole_members() {
    let (folder, store) = store();
    store.put(&key(0), &group()).unwrap();
    let output = folder.path().join("output");
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                let paths = store.materialize(&key(0), &output).unwrap().unwrap();
                assert_eq!(fs::read(&paths[0]).unwrap(), group().binary());
            });
        }
    });
    assert_eq!(contents(&output).len(), 2, "nothing unfinished is left");
}
