//! A8: bundles are whole or refused, the same wherever they are packed, and served from below.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use grainstore_artifacts::{
    ArtifactStore, Error, ForeignKey, Group, LookUp, Options, Signature, encode,
};
use tempfile::TempDir;

use common::{group, key, not_run};

/// A store with these kernels, in a folder of its own, which is given too.
fn stored(kernels: impl Iterator<Item = usize>) -> (TempDir, ArtifactStore) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ArtifactStore::open(folder.path().join("store")).expect("a store");
    for number in kernels {
        let bytes = vec![number as u8; 100 + number * 37];
        store.put(&key(number), &group().with_member("extra", bytes)).expect("a put");
    }
    (folder, store)
}

fn packed(folder: &TempDir, store: &ArtifactStore) -> PathBuf {
    let path = folder.path().join("kernels.tar");
    store.pack(&path, |_| true).expect("a bundle");
    path
}

/// Everything below a folder: path, mode and bytes.
fn tree(folder: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let mode = entry.metadata().expect("to be there").permissions().mode();
        if path.is_dir() {
            found.extend(tree(&path));
        }
        let bytes = if path.is_dir() { Vec::new() } else { fs::read(&path).expect("bytes") };
        found.push((path, mode, bytes));
    }
    found.sort();
    found
}

#[test]
fn a8_a_bundle_goes_into_another_store_whole() {
    let (folder, store) = stored(0..20);
    let bundle = packed(&folder, &store);
    let (_other, other) = stored(0..5);
    fs::write(other.file(&key(0)), "broken").unwrap();
    let unpacked = other.unpack(&bundle).unwrap();
    assert_eq!((unpacked.added, unpacked.present), (16, 4));
    assert!(unpacked.rejected.is_empty());
    for number in 0..20 {
        assert_eq!(other.get(&key(number)).unwrap(), store.get(&key(number)).unwrap());
        assert!(other.get(&key(number)).unwrap().is_some());
    }
}

#[test]
fn a8_the_same_artifacts_are_the_same_bundle_whoever_packs_them_in_whatever_order() {
    let (folder, store) = stored(0..20);
    let (other_folder, other) = stored((0..20).rev());
    let [one, two] = [(&folder, &store), (&other_folder, &other)]
        .map(|(folder, store)| fs::read(packed(folder, store)).unwrap());
    assert!(one == two);
}

#[test]
fn a8_only_what_is_chosen_is_packed_and_what_is_broken_is_left_out() {
    let (folder, store) = stored(0..6);
    let foreign = ForeignKey::new("tuner", *b"record").unwrap();
    store.put(&foreign, &Group::new("k", vec![1])).unwrap();
    fs::write(store.file(&key(5)), "broken").unwrap();
    let path = folder.path().join("bundle");
    let kernels = store.pack(&path, |entry| entry.namespace() == "kernel").unwrap();
    assert_eq!(kernels.artifacts, 5);
    assert_eq!(kernels.bytes, fs::metadata(&path).unwrap().len());
    let none = store.pack(folder.path().join("none"), |_| false).unwrap();
    assert_eq!(none.artifacts, 0);
    let (_target, target) = stored(0..0);
    assert_eq!(target.unpack(&none.path).unwrap().added, 0);
    assert_eq!(target.unpack(&path).unwrap().added, 5);
    let beside = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(beside, 3, "the store and two bundles, and nothing unfinished");
}

#[test]
fn a8_a_bundle_is_a_layer_as_it_is_and_unpacked_by_any_tool() {
    let (folder, store) = stored(0..10);
    let bundle = packed(&folder, &store);
    let mounted = folder.path().join("mounted");
    fs::create_dir(&mounted).unwrap();
    let tar = Command::new("tar").arg("-xf").arg(&bundle).arg("-C").arg(&mounted).status();
    assert!(tar.expect("tar").success());

    for layer in [&bundle, &mounted] {
        let before = tree(&mounted);
        let place = tempfile::tempdir().unwrap();
        let above = Options::new().layer(layer).open(place.path()).unwrap();
        assert!(above.get(&key(3)).unwrap().is_some());
        assert_eq!(above.get(&key(10)).unwrap(), None);
        assert!(matches!(above.lookup_or_lease(&key(4), Duration::ZERO).unwrap(), LookUp::Hit(_)));
        // What is above comes first, unless it is broken.
        above.put(&key(3), &group()).unwrap();
        assert_eq!(above.get(&key(3)).unwrap(), Some(group()));
        fs::write(above.file(&key(3)), "broken").unwrap();
        assert_eq!(above.get(&key(3)).unwrap(), store.get(&key(3)).unwrap());
        // Nothing that is done above reaches below.
        above.remove(&key(4)).unwrap();
        above.clear().unwrap();
        above.prune(0).unwrap();
        assert!(above.get(&key(4)).unwrap().is_some());
        assert_eq!(tree(&mounted), before);
    }
}

#[test]
fn a8_a_bundle_that_is_cut_or_no_bundle_is_refused() {
    let (folder, store) = stored(0..3);
    let whole = fs::read(packed(&folder, &store)).unwrap();
    let path = folder.path().join("other");
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Options::new().layer(&path).open(folder.path().join("above")).map(drop)
    };
    open(&whole).unwrap();
    // The archive's end, two blocks of zeros, is nobody's artifact.
    let artifacts = whole.len() - 1024;
    for length in (0..artifacts - 512).step_by(97) {
        let error = open(&whole[..length]).unwrap_err().to_string();
        assert!(error.contains("no whole bundle"), "{length}: {error}");
    }
    for other in [&b"#!/bin/sh\n"[..], &[0; 4096], b""] {
        assert!(open(other).is_err());
    }
    fs::remove_file(&path).unwrap();
    let missing = Options::new().layer(&path).open(folder.path().join("above")).unwrap_err();
    assert!(missing.to_string().contains("other"), "{missing}");
}

#[test]
fn a8_what_is_broken_in_a_bundle_is_left_out_and_listed() {
    let (folder, store) = stored(0..3);
    let bundle = packed(&folder, &store);
    let mut bytes = fs::read(&bundle).unwrap();
    let artifact = fs::read(store.file(&key(1))).unwrap();
    let at = bytes.windows(artifact.len()).position(|window| window == artifact).unwrap();
    bytes[at + artifact.len() / 2] ^= 1;
    fs::write(&bundle, bytes).unwrap();
    let (_target, target) = stored(0..0);
    let unpacked = target.unpack(&bundle).unwrap();
    assert_eq!(unpacked.added, 2);
    let names: Vec<_> =
        unpacked.rejected.iter().map(|(fingerprint, why)| (*fingerprint, why.name())).collect();
    assert_eq!(names, [(key(1).fingerprint(), "digest")]);
    let above = Options::new().layer(&bundle).open(folder.path().join("above")).unwrap();
    assert_eq!(above.get(&key(1)).unwrap(), None);
    assert!(above.get(&key(2)).unwrap().is_some());
}

#[test]
fn a8_what_cannot_be_packed_or_unpacked_says_what_to_name_instead() {
    let (folder, store) = stored(0..1);
    let bundle = packed(&folder, &store);
    let at = |name: &str| folder.path().join(name);
    let told = [
        (store.unpack(at("nothing")).unwrap_err(), "name the file that was packed"),
        (store.unpack(folder.path()).unwrap_err(), "name the file that was packed"),
        (store.pack(at("no/such/folder"), |_| true).unwrap_err(), "make the folder"),
        (store.pack(store.path(), |_| true).unwrap_err(), "name another place"),
        (store.pack_oci(&bundle, "latest", |_| true).unwrap_err(), "name another place"),
    ];
    for (error, words) in told {
        let text = error.to_string();
        assert!(matches!(error, Error::Bundle { .. }) && text.contains(words), "{text}");
        // Where the store is has nothing to do with it.
        assert!(!text.contains("GRAINSTORE_DIR"), "{text}");
    }
    assert!(bundle.is_file());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&bundle, at("link")).unwrap();
        let text = store.unpack(at("link")).unwrap_err().to_string();
        assert!(text.contains("name the file that it leads to"), "{text}");
        let text = store.unpack("/dev/null").unwrap_err().to_string();
        assert!(text.contains("name the file of a bundle") && !text.contains("remove"), "{text}");
    }
}

#[test]
fn a8_a_signature_travels_with_its_artifact() {
    let (folder, store) = stored(0..1);
    let signature = Signature { public_key: [1; 32], signature: [2; 64] };
    let signed = signature.put_into(&encode(&key(0), &group()).unwrap()).unwrap();
    fs::write(store.file(&key(0)), &signed).unwrap();
    let (_target, target) = stored(0..0);
    target.unpack(packed(&folder, &store)).unwrap();
    assert_eq!(fs::read(target.file(&key(0))).unwrap(), signed);
}

#[test]
fn a6_a_layer_that_others_may_write_is_not_used() {
    let (folder, store) = stored(0..1);
    let bundle = packed(&folder, &store);
    let layered = |layer: &Path| Options::new().layer(layer).open(folder.path().join("above"));
    for path in [&bundle, store.path()] {
        let mode = fs::metadata(path).unwrap().permissions();
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        let error = layered(path).unwrap_err();
        assert!(
            matches!(&error, Error::Untrusted { layer: Some(at), .. } if at == path),
            "{error}"
        );
        // Where the store is has nothing to do with it.
        let text = error.to_string();
        assert!(
            text.contains(path.to_str().unwrap()) && !text.contains("GRAINSTORE_DIR"),
            "{text}"
        );
        assert!(text.contains("chmod go-w") && text.contains("name a copy"), "{text}");
        fs::set_permissions(path, mode).unwrap();
        layered(path).unwrap();
    }
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&bundle, &link).unwrap();
    assert!(layered(&link).is_err(), "what it points to could change");
}

#[test]
fn a8_use_only_changes_nothing() {
    let (_folder, store) = stored(0..3);
    fs::write(store.file(&key(2)), "broken").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(100 * 3600);
    let file = fs::File::options().append(true).open(store.file(&key(0))).unwrap();
    file.set_modified(old).unwrap();
    let path = store.path().to_owned();
    drop(store);
    let before = tree(&path);

    let store = Options::new().use_only().open(&path).unwrap();
    assert!(store.get(&key(0)).unwrap().is_some());
    assert_eq!(store.get(&key(2)).unwrap(), None);
    assert!(store.loading(&key(0)).is_none());
    match store.lookup_or_lease(&key(7), Duration::from_secs(3600)).unwrap() {
        LookUp::Lease(lease) => assert!(!lease.is_exclusive()),
        LookUp::Hit(_) => panic!("there is none"),
    }
    let refused = [
        store.put(&key(7), &group()).map(drop),
        store.put_if_absent(&key(7), &group()).map(drop),
        store.replace(&key(0), &group()).map(drop),
        store.remove(&key(0)).map(drop),
        store.touch(&key(0)).map(drop),
        store.prune(0).map(drop),
        store.purge("kernel").map(drop),
        store.clear().map(drop),
        store.unpack("nothing").map(drop),
    ];
    for (at, outcome) in refused.into_iter().enumerate() {
        assert!(matches!(outcome, Err(Error::UseOnly)), "{at}: {outcome:?}");
    }
    assert_eq!(store.overall_statistics().writes, 3);
    drop(store);
    assert_eq!(tree(&path), before);
    assert_eq!(file.metadata().unwrap().modified().unwrap(), old);
    let missing = path.join("missing");
    assert!(Options::new().use_only().open(&missing).is_err());
    assert!(!missing.exists(), "and makes none");
}

#[test]
#[cfg(feature = "runtime")]
fn a8_behind_a_runtime_use_only_keeps_nothing_in_silence() {
    use grainstore_runtime::{Artifact, BuildFacts, Store};
    let (_folder, store) = stored(0..1);
    let only = Options::new().use_only().open(store.path()).unwrap();
    let artifact = Artifact::new("k", vec![1]);
    Store::put(&only, &key(1), &artifact, &BuildFacts::default()).unwrap();
    Store::discard(&only, &key(0)).unwrap();
    assert_eq!(store.get(&key(1)).unwrap(), None);
    assert!(store.get(&key(0)).unwrap().is_some());
}

#[test]
fn a8_an_oci_layout_is_the_same_everywhere_and_its_layer_is_the_bundle() {
    let (folder, store) = stored(0..10);
    let bundle = fs::read(packed(&folder, &store)).unwrap();
    let layouts = ["one", "two"].map(|name| {
        let path = folder.path().join(name);
        let packed = store.pack_oci(&path, "1.0", |_| true).unwrap();
        assert_eq!((packed.artifacts, packed.bytes), (10, bundle.len() as u64));
        path
    });
    let relative = |root: &Path| {
        let files = tree(root).into_iter();
        files
            .map(|(path, _, bytes)| (path.strip_prefix(root).unwrap().to_owned(), bytes))
            .collect::<Vec<_>>()
    };
    assert!(relative(&layouts[0]) == relative(&layouts[1]));
    assert!(relative(&layouts[0]).iter().any(|(_, bytes)| *bytes == bundle));
    assert!(store.pack_oci(&layouts[0], "1.0", |_| true).is_err(), "it is there already");

    // What the tools of the field think of it.
    let image = format!("oci:{}:1.0", layouts[0].display());
    match Command::new("skopeo").args(["inspect", "--raw", &image]).output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(why) => not_run("run skopeo", why),
    }
}
