//! From an artifact back to a function, also in another process, and what is refused on the way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{DEVICE, answer, check_saxpy, in_child, saxpy, spec};
use grainstore_conformance::testing::is_child;
use grainstore_host::HostBackend;
use grainstore_runtime::{Artifact, Backend, BackendError, KernelSpec};

fn built(spec: &KernelSpec) -> Artifact {
    HostBackend::new().build(&DEVICE, spec).unwrap().1.unwrap()
}

/// What the loader says of these bytes, sealed as if this backend had made them.
fn refusal(bytes: &[u8]) -> String {
    let host = HostBackend::new();
    let target = host.target(&DEVICE).unwrap();
    let artifact = Artifact::new("kernel.so", bytes.to_vec()).sealed(target.as_str());
    match host.load(&DEVICE, &saxpy(), &artifact) {
        Err(BackendError::InvalidArtifact { reason }) => reason,
        Err(other) => panic!("{} bytes: {other}", bytes.len()),
        Ok(_) => panic!("{} bytes were loaded", bytes.len()),
    }
}

#[test]
fn an_artifact_is_loaded_without_a_compiler() {
    let artifact = built(&saxpy());
    let host = HostBackend::builder().compiler("/nowhere/cc").build();
    check_saxpy(&host.load(&DEVICE, &saxpy(), &artifact).unwrap());
    let target = host.target(&DEVICE).unwrap();
    let compiled = HostBackend::new().compile_for(&target, &saxpy()).unwrap();
    assert!(compiled == artifact);
}

#[test]
fn an_artifact_is_loaded_in_another_process() {
    if is_child() {
        let read = |name: &str| std::fs::read(std::env::var(name).unwrap()).unwrap();
        let artifact = Artifact::new("kernel.so", read("KERNEL")).with_member("seal", read("SEAL"));
        check_saxpy(&HostBackend::new().load(&DEVICE, &saxpy(), &artifact).unwrap());
        return;
    }
    let artifact = built(&saxpy());
    let folder = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let file = |member: &str| {
        let path = folder.path().join(member);
        std::fs::write(&path, artifact.member(member).unwrap()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (kernel, seal) = (file("kernel.so"), file("seal"));
    in_child(
        "an_artifact_is_loaded_in_another_process",
        &[("KERNEL", &kernel), ("SEAL", &seal), ("TMPDIR", temporary.path().to_str().unwrap())],
    );
    assert_eq!(common::listing(temporary.path()), [""; 0]);
}

#[test]
fn equal_bytes_are_two_modules() {
    let count = spec("static int n; int count(void) { return ++n; }").build().unwrap();
    let artifact = built(&count);
    let host = HostBackend::new();
    let [first, second] = [(); 2].map(|()| host.load(&DEVICE, &count, &artifact).unwrap());
    assert_eq!([1, 2, 3].map(|_| answer(&first, "count")), [1, 2, 3]);
    assert_eq!(answer(&second, "count"), 1);
    host.unload(first).unwrap();
    // Whatever the first one left free is used again, and still gives a fresh module.
    let third = host.load(&DEVICE, &count, &artifact).unwrap();
    assert_eq!(answer(&third, "count"), 1);
    assert_eq!(answer(&second, "count"), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn unloading_leaves_no_mapping_and_no_descriptor() {
    if !is_child() {
        // Alone in a process, so that no other test opens or maps anything meanwhile.
        in_child("unloading_leaves_no_mapping_and_no_descriptor", &[]);
        return;
    }
    let artifact = built(&saxpy());
    let host = HostBackend::new();
    let facts = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mapped = maps.lines().filter(|line| line.contains("grainstore-kernel")).count();
        (mapped, std::fs::read_dir("/proc/self/fd").unwrap().count())
    };
    drop(host.load(&DEVICE, &saxpy(), &artifact).unwrap());
    let before = facts();
    assert_eq!(before.0, 0);
    for _ in 0..100 {
        let module = host.load(&DEVICE, &saxpy(), &artifact).unwrap();
        assert!(facts().0 > 0);
        host.unload(module).unwrap();
    }
    assert_eq!(facts(), before);
}

#[test]
fn a_missing_entry_point_is_no_fault_of_the_artifact() {
    let artifact = built(&saxpy());
    let other = spec(common::SAXPY).entry("other").build().unwrap();
    let error = HostBackend::new().load(&DEVICE, &other, &artifact).unwrap_err();
    assert!(matches!(error, BackendError::NoEntryPoint { .. }), "{error}");
}

#[test]
fn what_was_not_sealed_here_is_refused() {
    let host = HostBackend::new();
    let artifact = built(&saxpy());
    let bytes = artifact.binary();
    let mut flipped = bytes.to_vec();
    flipped[bytes.len() / 2] ^= 1;
    let seal = artifact.member("seal").unwrap().to_vec();
    let bytes = bytes.to_vec();
    let foreign = Artifact::new("kernel.so", bytes.clone()).sealed("riscv64-linux-gnu");
    for artifact in [
        Artifact::new("kernel.so", vec![]),
        Artifact::new("kernel.so", bytes.clone()),
        Artifact::new("kernel.so", flipped).with_member("seal", seal.clone()),
        Artifact::new("kernel.so", bytes[..bytes.len() - 1].to_vec())
            .with_member("seal", seal.clone()),
        Artifact::new("other.so", bytes).with_member("seal", seal),
        foreign,
    ] {
        let error = host.load(&DEVICE, &saxpy(), &artifact).unwrap_err();
        assert!(matches!(error, BackendError::InvalidArtifact { .. }), "{error}");
    }
}

#[test]
fn a_file_cut_anywhere_never_reaches_the_loader() {
    let artifact = built(&saxpy());
    let bytes = artifact.binary();
    for length in 0..bytes.len() {
        refusal(&bytes[..length]);
    }
    if cfg!(all(target_os = "linux", target_pointer_width = "64")) {
        // Loaders do without the table of sections, which stands at the end.
        let mut bytes = bytes.to_vec();
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        assert!(refusal(&bytes[..bytes.len() / 4]).contains("cut or broken"));
    }
}

#[test]
fn files_of_other_kinds_are_refused_in_words() {
    assert!(refusal(b"#!/bin/sh\nexit 1\n").contains("no shared object"));
    assert!(refusal(&[0; 4096]).contains("no shared object"));
    let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let mut other = built(&saxpy()).binary().to_vec();
    // The machine's number in an ELF header: 243 is RISC-V.
    if cfg!(target_os = "linux") {
        other[18..20].copy_from_slice(&243_u16.to_le_bytes());
        assert!(refusal(&other).contains("Riscv"));
        // A program is not refused by its kind alone: position-independent ones look the same.
        assert!(!refusal(&this[..64]).is_empty());
    }
}

#[test]
fn a_library_that_lacks_a_symbol_is_an_invalid_artifact() {
    let spec = spec("int g(int); int f(void) { return g(1); }");
    // Undoes the check at build time, as a compiler elsewhere might.
    let host = HostBackend::builder().allow_option("-Wl,-z,undefs").build();
    let target = host.target(&DEVICE).unwrap();
    let artifact =
        host.compile_for(&target, &spec.option("-Wl,-z,undefs").build().unwrap()).unwrap();
    let reason = refusal_of(&host, &artifact);
    assert!(reason.contains("undefined symbol: g"), "{reason}");
}

fn refusal_of(host: &HostBackend, artifact: &Artifact) -> String {
    let spec = spec("unused").build().unwrap();
    match host.load(&DEVICE, &spec, artifact).unwrap_err() {
        BackendError::InvalidArtifact { reason } => reason,
        other => panic!("{other}"),
    }
}
