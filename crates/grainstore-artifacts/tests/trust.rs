//! A6 on a real file system: who may have written what is loaded.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use grainstore_artifacts::{ArtifactStore, Distrust, Error};
use tempfile::TempDir;

use common::{group, key, not_run};

/// Some user who is neither root nor this one.
const STRANGER: u32 = 54321;
/// Who can give files away.
const ME: u32 = 0;

/// A store with one artifact, in a folder of a folder of its own.
fn stored() -> (TempDir, PathBuf) {
    let above = tempfile::tempdir().expect("a folder");
    let folder = above.path().join("store");
    ArtifactStore::open(&folder).expect("a store").put(&key(0), &group()).expect("a put");
    (above, folder)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// What comes of opening the store and reading the artifact.
fn load(folder: &Path) -> Result<(), Error> {
    let group = ArtifactStore::open(folder)?.get(&key(0))?;
    assert_eq!(group, Some(self::group()));
    Ok(())
}

/// The path that is distrusted, and why.
fn distrusted(folder: &Path) -> (PathBuf, Distrust) {
    match load(folder) {
        Err(Error::Untrusted { path, distrust, layer: None }) => (path, distrust),
        other => panic!("trusted: {other:?}"),
    }
}

/// Whether there can be files of somebody else here.
fn may_give_files_away() -> bool {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let given = chown(file.path(), Some(STRANGER), None);
    if let Err(why) = &given {
        not_run("chown", why);
    }
    given.is_ok()
}

#[test]
fn a6_what_is_made_is_private() {
    let (_above, folder) = stored();
    let store = ArtifactStore::open(&folder).unwrap();
    let file = store.file(&key(0));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&file), 0o600);
    let folders = [&folder, &folder.join("v1"), &folder.join("v1/tmp"), file.parent().unwrap()];
    for folder in folders {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
}

#[test]
fn a6_folders_on_the_way_are_made_private() {
    let above = tempfile::tempdir().unwrap();
    ArtifactStore::open(above.path().join("a/b/c")).unwrap();
    for folder in ["a", "a/b", "a/b/c", "a/b/c/v1"] {
        let mode = fs::metadata(above.path().join(folder)).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o700, "{folder}");
    }
}

#[test]
fn a6_what_others_may_write_is_not_loaded_and_the_error_says_what_to_do() {
    let (above, folder) = stored();
    let file = ArtifactStore::open(&folder).unwrap().file(&key(0));
    let shard = file.parent().unwrap();
    let version = folder.join("v1");
    for path in [above.path(), &folder, &version, shard, &file] {
        let mode = fs::metadata(path).unwrap().mode() & 0o7777;
        for bits in [0o020, 0o002, 0o022] {
            set_mode(path, mode | bits);
            let (found, why) = distrusted(&folder);
            assert_eq!(found, path);
            assert_eq!(why, Distrust::Writable { mode: mode | bits });
        }
        let text = load(&folder).unwrap_err().to_string();
        assert!(text.contains(&format!("chmod go-w {}", path.display())), "{text}");
        set_mode(path, mode);
        load(&folder).unwrap();
    }
}

#[test]
fn a6_others_may_read_and_a_sticky_folder_above_may_be_shared() {
    let (above, folder) = stored();
    let file = ArtifactStore::open(&folder).unwrap().file(&key(0));
    set_mode(&file, 0o644);
    set_mode(file.parent().unwrap(), 0o755);
    set_mode(&folder, 0o755);
    set_mode(above.path(), 0o1777);
    load(&folder).unwrap();
    // Above it, not itself: in a shared folder anybody could make the files of keys yet to come.
    set_mode(&folder, 0o1777);
    assert_eq!(distrusted(&folder), (folder.clone(), Distrust::Writable { mode: 0o1777 }));
    let roundabout = folder.join("v1/..");
    assert_eq!(distrusted(&roundabout), (folder, Distrust::Writable { mode: 0o1777 }));
}

#[test]
fn a6_a_folder_that_became_shared_while_open_is_not_read() {
    let (_above, folder) = stored();
    let store = ArtifactStore::open(&folder).unwrap();
    set_mode(&folder.join("v1"), 0o777);
    let got = store.get(&key(0));
    assert!(matches!(got, Err(Error::Untrusted { .. })), "{got:?}");
    assert_eq!(store.statistics().read_failures, 1);
}

#[test]
fn a6_a_shared_folder_is_not_opened_and_so_not_written_either() {
    let (_above, folder) = stored();
    for path in [folder.join("v1"), folder.clone()] {
        set_mode(&path, 0o770);
        let opened = ArtifactStore::open(&folder);
        assert!(matches!(opened, Err(Error::Untrusted { .. })), "{opened:?}");
        set_mode(&path, 0o700);
    }
}

#[test]
fn a6_a_distrusted_file_is_replaced_by_the_next_put() {
    let (_above, folder) = stored();
    let store = ArtifactStore::open(&folder).unwrap();
    set_mode(&store.file(&key(0)), 0o666);
    assert!(store.get(&key(0)).is_err());
    store.put(&key(0), &group()).unwrap();
    load(&folder).unwrap();
}

#[test]
fn a6_links_in_the_store_are_refused() {
    let (above, folder) = stored();
    let file = ArtifactStore::open(&folder).unwrap().file(&key(0));
    let elsewhere = above.path().join("elsewhere");
    let shard = file.parent().unwrap();
    for path in [&file, shard, &folder.join("v1")] {
        fs::rename(path, &elsewhere).unwrap();
        symlink(&elsewhere, path).unwrap();
        let (found, why) = distrusted(&folder);
        assert_eq!((found.as_path(), why), (path, Distrust::Link));
        fs::remove_file(path).unwrap();
        fs::rename(&elsewhere, path).unwrap();
        load(&folder).unwrap();
    }
}

#[test]
fn a6_a_put_replaces_a_link_and_leaves_what_it_points_to() {
    let (above, folder) = stored();
    let store = ArtifactStore::open(&folder).unwrap();
    let elsewhere = above.path().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    let file = store.file(&key(0));
    fs::remove_file(&file).unwrap();
    symlink(&elsewhere, &file).unwrap();
    store.put(&key(0), &group()).unwrap();
    assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
    load(&folder).unwrap();
}

#[test]
fn a6_a_users_own_links_to_the_store_are_followed_and_loops_end() {
    let (above, folder) = stored();
    let link = above.path().join("link");
    symlink("store", &link).unwrap();
    load(&link).unwrap();
    // What the link leads to is judged like everything else.
    set_mode(&folder, 0o777);
    assert_eq!(distrusted(&link).0, folder);

    let (a, b) = (above.path().join("a"), above.path().join("b"));
    symlink(&a, &b).unwrap();
    symlink(&b, &a).unwrap();
    assert_eq!(distrusted(&a).1, Distrust::LinkLoop);
}

#[test]
fn a6_a_pipe_in_an_artifacts_place_hangs_nobody() {
    let (_above, folder) = stored();
    let file = ArtifactStore::open(&folder).unwrap().file(&key(0));
    fs::remove_file(&file).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(distrusted(&folder), (file, Distrust::Kind));
}

#[test]
fn a6_what_belongs_to_somebody_else_is_not_loaded() {
    if !may_give_files_away() {
        return;
    }
    let (above, folder) = stored();
    let file = ArtifactStore::open(&folder).unwrap().file(&key(0));
    let shard = file.parent().unwrap();
    let link = above.path().join("link");
    symlink(&folder, &link).unwrap();
    for path in [above.path(), &folder, &folder.join("v1"), shard, &file] {
        chown(path, Some(STRANGER), None).unwrap();
        let (found, why) = distrusted(&folder);
        assert_eq!(found, path);
        assert_eq!(why, Distrust::Owner { owner: STRANGER, user: ME });
        chown(path, Some(ME), None).unwrap();
        load(&folder).unwrap();
    }
    std::os::unix::fs::lchown(&link, Some(STRANGER), None).unwrap();
    assert_eq!(distrusted(&link), (link, Distrust::Owner { owner: STRANGER, user: ME }));
}

#[test]
fn a6_a_stranger_in_a_sticky_folder_above_owns_nothing_that_is_loaded() {
    if !may_give_files_away() {
        return;
    }
    let (above, folder) = stored();
    set_mode(above.path(), 0o1777);
    load(&folder).unwrap();
    // Who owns a sticky folder may rename in it whatever they like.
    chown(above.path(), Some(STRANGER), None).unwrap();
    assert_eq!(distrusted(&folder).0, above.path());
}
