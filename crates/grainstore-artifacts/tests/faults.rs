//! A5: disks that are full or read-only. They are made here as small file systems in memory.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use grainstore_artifacts::{ArtifactStore, Error, Group, Options};
use tempfile::TempDir;

use common::{group, key, not_run};

/// A mounted file system, unmounted when dropped.
struct Mount(TempDir);

impl Mount {
    /// None, and said so, where this machine lets nobody mount.
    fn new(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        match mount(&["-t", "tmpfs", "-o", options, "none"], folder.path()) {
            Ok(()) => Some(Self(folder)),
            Err(why) => {
                not_run("mount", why);
                None
            }
        }
    }

    fn read_only(&self) {
        mount(&["-o", "remount,ro,noexec"], self.0.path()).expect("to mount again what is mounted");
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn mount(arguments: &[&str], folder: &Path) -> Result<(), String> {
    let output = Command::new("mount").args(arguments).arg(folder).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().next().unwrap_or("no reason given").to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn kind(error: &Error) -> ErrorKind {
    match error {
        Error::Io { error, .. } => error.kind(),
        other => panic!("no error of the system: {other}"),
    }
}

/// Files beside the artifacts: what a failed put must not leave.
fn unfinished(store: &Path) -> usize {
    fs::read_dir(store.join("v1/tmp")).map_or(0, Iterator::count)
}

#[test]
fn a5_a_disk_that_is_full_fails_puts_and_keeps_what_is_there() {
    let Some(disk) = Mount::new("size=256k,mode=0700") else { return };
    let store = ArtifactStore::open(disk.path()).unwrap();
    let large = Group::new("large", vec![7; 60_000]);
    let mut kept = 0;
    let error = loop {
        match store.put(&key(kept), &large) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 10, "256 KiB never fill up");
    };
    assert!(kept > 0);
    assert_eq!(kind(&error), ErrorKind::StorageFull);
    assert!(error.to_string().contains("free some space"), "{error}");
    assert_eq!(unfinished(disk.path()), 0);
    for number in 0..kept {
        assert_eq!(store.get(&key(number)).unwrap().as_ref(), Some(&large));
    }
    // A replacement needs room for both for a moment; failing, it leaves the old one.
    assert!(store.put(&key(0), &Group::new("larger", vec![8; 70_000])).is_err());
    assert_eq!(store.get(&key(0)).unwrap(), Some(large));
    assert!(store.remove(&key(0)).unwrap());
    store.put(&key(0), &group()).unwrap();
    assert_eq!(unfinished(disk.path()), 0);
}

#[test]
fn a5_a_disk_without_inodes_fails_puts_and_keeps_what_is_there() {
    // The root, `v1`, `tmp`, two folders of artifacts and two artifacts.
    let Some(disk) = Mount::new("nr_inodes=8,mode=0700") else { return };
    let store = ArtifactStore::open(disk.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    let error = (1..20).find_map(|number| store.put(&key(number), &group()).err()).unwrap();
    assert_eq!(kind(&error), ErrorKind::StorageFull);
    assert!(error.to_string().contains("inodes"), "{error}");
    assert_eq!(unfinished(disk.path()), 0);
    assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
}

#[test]
fn a5_a_read_only_disk_serves_what_it_has() {
    let Some(disk) = Mount::new("mode=0755") else { return };
    let place = disk.path().join("store");
    ArtifactStore::open(&place).unwrap().put(&key(0), &group()).unwrap();
    disk.read_only();
    let store = ArtifactStore::open(&place).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
    assert_eq!(store.get(&key(1)).unwrap(), None);
    for error in [
        store.put(&key(1), &group()).unwrap_err(),
        store.remove(&key(0)).unwrap_err(),
        ArtifactStore::open(disk.path().join("another")).unwrap_err(),
    ] {
        assert_eq!(kind(&error), ErrorKind::ReadOnlyFilesystem);
        assert!(error.to_string().contains("GRAINSTORE_DIR"), "{error}");
    }
}

#[test]
fn a8_a_layer_on_a_disk_that_is_read_only_and_noexec_is_served() {
    let Some(disk) = Mount::new("mode=0755") else { return };
    let place = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(place.path().join("store")).unwrap();
    store.put(&key(0), &group()).unwrap();
    let bundle = disk.path().join("kernels.tar");
    store.pack(&bundle, |_| true).unwrap();
    let unpacked = disk.path().join("unpacked");
    ArtifactStore::open(&unpacked).unwrap().unpack(&bundle).unwrap();
    disk.read_only();
    for layer in [&bundle, &unpacked] {
        let above = Options::new().layer(layer).open(place.path().join("above")).unwrap();
        assert_eq!(above.get(&key(0)).unwrap(), Some(group()));
        let alone = Options::new().use_only().open(&unpacked).unwrap();
        assert_eq!(alone.get(&key(0)).unwrap(), Some(group()));
    }
}

#[test]
fn a3_a_store_within_its_limit_never_fills_a_small_disk() {
    let Some(disk) = Mount::new("size=1m,mode=0755") else { return };
    let store = Options::new().limit(64 << 10).open(disk.path().join("store")).unwrap();
    // Within its limit it never fills the disk, whatever is put.
    for number in 0..100 {
        store.put(&key(number), &Group::new("k", vec![1; 20 << 10])).unwrap();
    }
    assert!(store.get(&key(99)).unwrap().is_some());
    assert_eq!(unfinished(disk.path()), 0);
}

#[test]
fn a5_a_folder_that_may_not_be_written_serves_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let store = ArtifactStore::open(folder.path()).unwrap();
    store.put(&key(0), &group()).unwrap();
    let temporary = folder.path().join("v1/tmp");
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o500)).unwrap();
    if rustix::process::geteuid().is_root() {
        // Permissions do not bind root: another kind of no, which does.
        fs::remove_dir(&temporary).unwrap();
        fs::write(&temporary, "").unwrap();
    }
    let store = ArtifactStore::open(folder.path()).unwrap();
    assert_eq!(store.get(&key(0)).unwrap(), Some(group()));
    let error = store.put(&key(1), &group()).unwrap_err();
    let expected = [ErrorKind::PermissionDenied, ErrorKind::NotADirectory];
    assert!(expected.contains(&kind(&error)), "{error}");
    assert!(error.to_string().contains("GRAINSTORE_DIR"), "{error}");
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o700)).unwrap();
}
