//! The store as one process sees it: what is put is got, and what is wrong is a miss.
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use grainstore_artifacts::{ArtifactStore, Error, Found, Group, Rejection, encode};

use common::{group, key, reseal};

/// All files but the two that the store keeps for itself.
fn files_in(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut ahead = vec![folder.to_owned()];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                ahead.push(path);
            } else if !path.ends_with("v1/use") && !path.ends_with("v1/locks") {
                found.push(path.to_str().expect("UTF-8").to_owned());
            }
        }
    }
    found
}

fn rejection(store: &ArtifactStore) -> Rejection {
    match store.find(&key(0)).expect("a readable file") {
        Found::Rejected(rejection) => rejection,
        other => panic!("not rejected: {other:?}"),
    }
}

#[test]
fn a1_what_is_put_is_got_also_by_the_next_process_to_open_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), None);
    store.put(&key(0), &group()).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
    assert_eq!(store.get(&key(1)).unwrap(), None);
    let again = ArtifactStore::open(folder.path()).unwrap();
    assert_eq!(again.get(&key(0)).unwrap(), Some(group()));

    let name = key(0).fingerprint().to_string();
    let file = folder.path().join("v1").join(&name[..2]).join(name + ".grain");
    assert_eq!(store.file(&key(0)), file);
    assert_eq!(files_in(folder.path()), [file.to_str().unwrap()], "and no temporary file");
}

#[test]
fn a1_a_put_replaces_and_a_remove_removes() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    store.put(&key(0), &Group::new("new", vec![9])).unwrap();
    assert_eq!(store.get(&key(0)).unwrap().unwrap().binary(), [9]);
    assert!(store.remove(&key(0)).unwrap());
    assert!(!store.remove(&key(0)).unwrap());
    assert_eq!(store.get(&key(0)).unwrap(), None);
}

#[test]
fn a1_a_large_group_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    let bytes: Vec<u8> =
        (0..5_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let large = Group::new("large", bytes).with_member("small", vec![1]);
    store.put(&key(0), &large).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(large));
}

#[test]
fn a2_what_is_wrong_is_a_miss_is_counted_and_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    let file = store.file(&key(0));
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let renamed = encode(&key(1), &group()).unwrap().to_vec();
    let wrong = [vec![], whole[..whole.len() / 2].to_vec(), flipped, renamed, vec![0; 4096]];
    let names = ["empty", "truncated", "digest", "fingerprint", "not-an-artifact"];
    for (bytes, name) in wrong.into_iter().zip(names) {
        fs::write(&file, bytes).unwrap();
        assert_eq!(rejection(&store).name(), name);
        assert_eq!(store.get(&key(0)).unwrap(), None);
        store.put(&key(0), &group()).unwrap();
        assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
    }
    let statistics = store.statistics();
    assert_eq!(statistics.hits, 5);
    assert_eq!(statistics.misses, 10);
    assert_eq!(statistics.writes, 6);
    let mut rejected = statistics.rejected;
    rejected.sort_unstable();
    let mut expected = names.map(|name| (name, 2));
    expected.sort_unstable();
    assert_eq!(rejected, expected);
}

#[test]
fn a2_a_file_with_the_fingerprint_but_not_the_fields_of_the_key_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    let mut file = fs::read(store.file(&key(0))).unwrap();
    let at = file.windows(6).position(|window| window == b"x86_64").unwrap();
    file[at + 5] = b'5';
    // The seal is made right: only the comparison with the key can tell.
    reseal(&mut file);
    fs::write(store.file(&key(0)), file).unwrap();
    assert_eq!(rejection(&store), Rejection::Key);
}

#[test]
fn a2_what_may_not_be_stored_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    for bad in [Group::default(), Group::new("k", vec![]), Group::new("../k", vec![1])] {
        assert!(matches!(store.put(&key(0), &bad), Err(Error::Refused(_))));
    }
    assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
    assert_eq!(store.statistics().write_failures, 3);
    assert_eq!(files_in(folder.path()).len(), 1);
}

#[test]
fn a5_a_folder_deleted_in_use_is_a_miss_and_is_made_again_by_a_put() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("store");
    let store = ArtifactStore::open(&place).unwrap();
    store.put(&key(0), &group()).unwrap();
    fs::remove_dir_all(&place).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), None);
    assert!(!store.remove(&key(0)).unwrap());
    store.put(&key(0), &group()).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
    assert!(ArtifactStore::open(&place).unwrap().get(&key(0)).unwrap().is_some());
}

#[test]
fn a5_single_folders_deleted_in_use_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    fs::remove_dir_all(folder.path().join("v1/tmp")).unwrap();
    fs::remove_dir_all(store.file(&key(0)).parent().unwrap()).unwrap();
    store.put(&key(0), &group()).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
}

#[test]
fn a5_old_unfinished_files_are_swept_at_the_next_open_and_new_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    let unfinished = |name: &str, hours: i64| {
        let path = folder.path().join("v1/tmp").join(name);
        let file = fs::File::create(&path).unwrap();
        let distance = Duration::from_secs(hours.unsigned_abs() * 3600);
        let now = SystemTime::now();
        let time = if hours < 0 { now - distance } else { now + distance };
        file.set_modified(time).unwrap();
        path
    };
    let dead = [unfinished("dead", -2), unfinished("from-the-future", 2)];
    let live = unfinished("live", 0);
    let store = ArtifactStore::open(folder.path()).unwrap();
    assert_eq!(store.statistics().swept, 2);
    assert!(dead.iter().all(|file| !file.exists()));
    assert!(live.exists());
    assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
}

#[test]
fn a5_a_file_where_the_folder_should_be_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below")] {
        let error = ArtifactStore::open(&place).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(file.to_str().unwrap()), "{text}");
        assert!(text.contains("GRAINSTORE_DIR"), "{text}");
    }
}

#[test]
fn a5_a_folder_in_an_artifacts_place_is_an_error_and_not_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    fs::create_dir_all(store.file(&key(0))).unwrap();
    assert!(store.get(&key(0)).is_err());
    assert!(store.put(&key(0), &group()).is_err());
    assert!(store.remove(&key(0)).is_err());
    assert!(files_in(folder.path()).is_empty(), "no temporary file is left");
}

#[test]
fn a5_a_file_larger_than_memory_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    // A hole takes no room on disk, and would take all of memory.
    let file = fs::File::options().write(true).open(store.file(&key(0))).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = store.get(&key(0)).unwrap_err();
    assert!(error.to_string().contains("remove it"), "{error}");
    store.put(&key(0), &group()).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
}

#[test]
fn a5_a_very_long_path_is_an_error_with_words() {
    let folder = tempfile::tempdir().unwrap();
    let error = ArtifactStore::open(folder.path().join("n".repeat(300))).unwrap_err();
    assert!(error.to_string().contains("GRAINSTORE_DIR"), "{error}");
}

#[test]
fn clones_share_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.clone().put(&key(0), &group()).unwrap();
    assert_eq!(store.statistics().writes, 1);
}
