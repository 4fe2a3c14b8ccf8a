//! Files that are whole but lie, and files that are not: reading them neither panics nor takes what
//! the file does not hold; and what is written is read back as it was.
#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::Bytes;
use grainstore::KernelKey;
use grainstore_artifacts::{Entry, Group, encode, parse};
use libfuzzer_sys::fuzz_target;

/// Length of the block for a signature, and of the seal behind it.
const SIGNATURE: usize = 104;
const SEAL: usize = 32;

#[derive(Arbitrary, Debug)]
struct Input {
    name: String,
    toolchain: String,
    nanoseconds: Option<u32>,
    members: Vec<(String, Vec<u8>)>,
    /// What is written over the file, and where.
    damage: Vec<(u16, u8)>,
    raw: Vec<u8>,
    seals: bool,
}

fn look(entry: &Entry, length: usize) {
    let held: usize = entry.group().members().iter().map(|member| member.bytes.len()).sum();
    assert!(held <= length, "{held} bytes of members in a file of {length}");
    assert!(entry.fields().all(|(name, value)| name.len() + value.len() <= length));
}

fuzz_target!(|input: Input| {
    let raw = Bytes::from(input.raw);
    if let Ok(entry) = parse(&raw, None) {
        look(&entry, raw.len());
    }
    let Ok(key) = KernelKey::builder(input.name).target("t").source("s").build() else { return };
    let mut group = Group::default().with_toolchain(input.toolchain);
    if let Some(nanoseconds) = input.nanoseconds {
        group = group.with_compile_time(Duration::from_nanos(nanoseconds.into()));
    }
    for (name, bytes) in input.members {
        group = group.with_member(name, bytes);
    }
    let Ok(file) = encode(&key, &group) else { return };
    let entry = parse(&file, Some(&key.fingerprint())).expect("what was written is read");
    assert_eq!(entry.group(), &group);
    let mut damaged = file.to_vec();
    let length = damaged.len();
    for (at, byte) in input.damage {
        damaged[usize::from(at) % length] = byte;
    }
    if input.seals {
        let (content, trailer) = damaged.split_at_mut(length - SIGNATURE - SEAL);
        let (signature, seal) = trailer.split_at_mut(SIGNATURE);
        let mut outer = blake3::Hasher::new();
        outer.update(blake3::hash(content).as_bytes()).update(signature);
        seal.copy_from_slice(outer.finalize().as_bytes());
    }
    let damaged = Bytes::from(damaged);
    match parse(&damaged, None) {
        Ok(entry) => look(&entry, length),
        Err(_) => assert_ne!(damaged, file),
    }
});
