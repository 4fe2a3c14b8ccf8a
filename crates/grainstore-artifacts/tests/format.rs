//! A1 and A2 on bytes: what is written is read, and nothing else is.
#![allow(clippy::expect_used, reason = "a test that can't set its scene should fail")]

mod common;

use std::time::Duration;

use bytes::Bytes;
use grainstore::{KernelKey, KernelKeyBuilder};
use grainstore_artifacts::{Group, MAX_METADATA, Refusal, Rejection, Signature, encode, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

use common::{group, key, reseal};

const TRAILER: usize = 104 + 32;

fn file() -> Vec<u8> {
    encode(&key(0), &group()).expect("a file").to_vec()
}

fn rejection(file: impl Into<Bytes>) -> Rejection {
    parse(&file.into(), Some(&key(0).fingerprint())).expect_err("a rejection")
}

/// Puts `with` in the place of the first `what`, and makes the seal right again.
fn forged(what: &[u8], with: &[u8]) -> Vec<u8> {
    assert_eq!(what.len(), with.len());
    let mut file = file();
    let at = file.windows(what.len()).position(|window| window == what).expect("to be there");
    file[at..at + what.len()].copy_from_slice(with);
    reseal(&mut file);
    file
}

#[test]
fn a1_what_is_written_is_read() {
    let entry = parse(&file().into(), Some(&key(0).fingerprint())).unwrap();
    assert_eq!(entry.fingerprint(), key(0).fingerprint());
    assert_eq!(entry.namespace(), "kernel");
    let fields: Vec<_> = entry.fields().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    let of_key: Vec<_> = key(0).fields().map(|(n, v)| (n.into_owned(), v.into_owned())).collect();
    assert_eq!(fields, of_key);
    assert_eq!(entry.group(), &group());
    assert_eq!(entry.into_group().member("kernel.c").unwrap().len(), 31);
}

#[test]
fn a1_without_a_fingerprint_any_key_is_read() {
    assert_eq!(parse(&file().into(), None).unwrap().fingerprint(), key(0).fingerprint());
}

#[test]
fn a1_members_are_views_of_the_file_and_aligned() {
    let file = Bytes::from(file());
    let group = parse(&file, None).unwrap().into_group();
    for member in group.members() {
        let offset = member.bytes.as_ptr() as usize - file.as_ptr() as usize;
        assert!(offset < file.len(), "{} was copied", member.name);
        assert_eq!(offset % 16, 0, "{}", member.name);
    }
}

#[test]
fn a1_metadata_is_bounded_at_64_kib_of_text() {
    // Quotes are a part of the text.
    let fits = group().with_metadata(Value::String("m".repeat(MAX_METADATA - 2)));
    let file = encode(&key(0), &fits).unwrap();
    assert_eq!(parse(&file, None).unwrap().group(), &fits);
    let over = group().with_metadata(Value::String("m".repeat(MAX_METADATA - 1)));
    let refused = encode(&key(0), &over);
    assert_eq!(refused, Err(Refusal::MetadataTooLong { length: MAX_METADATA + 1 }));
}

#[test]
fn a1_a_time_that_no_field_holds_is_kept_as_the_longest() {
    let file = encode(&key(0), &group().with_compile_time(Duration::MAX)).unwrap();
    let time = parse(&file, None).unwrap().group().compile_time();
    assert_eq!(time, Some(Duration::from_nanos(u64::MAX - 1)));
}

#[test]
fn a2_an_empty_file_and_every_cut_are_rejected() {
    let file = file();
    assert_eq!(rejection(vec![]), Rejection::Empty);
    for length in 1..file.len() {
        let found = length as u64;
        assert_eq!(rejection(file[..length].to_vec()), Rejection::Truncated { found });
    }
}

#[test]
fn a2_every_flipped_bit_is_rejected() {
    let whole = file();
    for position in 0..whole.len() {
        for bit in 0..8 {
            let mut file = whole.clone();
            file[position] ^= 1 << bit;
            let rejection = rejection(file);
            let expected = match position {
                0..8 => matches!(rejection, Rejection::NotAnArtifact),
                8..12 => matches!(rejection, Rejection::Version { .. }),
                16..24 => {
                    matches!(rejection, Rejection::Truncated { .. } | Rejection::Overlong { .. })
                }
                _ => matches!(rejection, Rejection::Digest),
            };
            assert!(expected, "bit {bit} of byte {position}: {rejection:?}");
        }
    }
}

#[test]
fn a2_appended_bytes_nuls_and_garbage_are_rejected() {
    let mut long = file();
    long.push(0);
    let found = long.len() as u64;
    assert_eq!(rejection(long), Rejection::Overlong { found });
    let nuls = vec![0; file().len()];
    assert_eq!(rejection(nuls), Rejection::NotAnArtifact);
    assert_eq!(rejection(&b"#!/bin/sh\nrm -rf /\n"[..]), Rejection::NotAnArtifact);
}

#[test]
fn a2_nuls_over_any_tail_are_rejected() {
    // What a file system may leave of a file when the power fails.
    let whole = file();
    for from in 0..whole.len() {
        let mut file = whole.clone();
        file[from..].fill(0);
        assert!(parse(&file.into(), None).is_err(), "NULs from {from}");
    }
}

#[test]
fn a2_another_version_and_another_key_are_told_apart() {
    let mut other = file();
    other[8] = 2;
    reseal(&mut other);
    assert_eq!(rejection(other), Rejection::Version { found: 2 });
    let found = key(1).fingerprint();
    let renamed = encode(&key(1), &group()).unwrap();
    assert_eq!(rejection(renamed), Rejection::Fingerprint { found });
}

#[test]
fn a2_a_signature_of_an_unknown_kind_is_rejected() {
    let file = file();
    let at = file.len() - TRAILER;
    for (offset, byte) in [(0, 2), (4, 1), (8, 1), (103, 1)] {
        let mut file = file.clone();
        file[at + offset] = byte;
        reseal(&mut file);
        assert_eq!(rejection(file), Rejection::Signature, "{offset}");
    }
}

#[test]
fn a1_a_signature_goes_in_afterwards_and_changes_nothing_else() {
    let file = Bytes::from(file());
    let unsigned = parse(&file, None).unwrap();
    assert_eq!(unsigned.signature(), None);
    let first = Signature { public_key: [1; 32], signature: [2; 64] };
    let other = Signature { public_key: [3; 32], signature: [4; 64] };
    let signed = first.put_into(&file).unwrap();
    let resigned = other.put_into(&signed).unwrap();
    for (file, signature) in [(&signed, first), (&resigned, other)] {
        let entry = parse(file, Some(&key(0).fingerprint())).unwrap();
        assert_eq!(entry.signature(), Some(&signature));
        assert_eq!(entry.content_digest(), unsigned.content_digest());
        assert_eq!(entry.group(), &group());
    }
    // The seal covers it.
    let mut flipped = signed.to_vec();
    flipped[file.len() - TRAILER + 50] ^= 1;
    assert_eq!(rejection(flipped), Rejection::Digest);
    assert_eq!(first.put_into(&file.slice(1..)), Err(Rejection::NotAnArtifact));
}

#[test]
fn a1_a_compression_of_an_unknown_kind_is_rejected() {
    let name = b"\x09\0\0\0kernel.so";
    let with_kind = |kind: u8| [&name[..], &[kind, 0, 0, 0]].concat();
    let rejection = rejection(forged(&with_kind(0), &with_kind(1)));
    assert_eq!(rejection, Rejection::Malformed { part: "kind of compression" });
}

#[test]
fn a2_empty_groups_and_binaries_are_refused_at_both_ends() {
    assert_eq!(encode(&key(0), &Group::default()), Err(Refusal::NoMembers));
    let empty = Group::new("k", vec![]);
    assert_eq!(encode(&key(0), &empty), Err(Refusal::EmptyBinary { name: "k".into() }));

    // By a forger: the file of a group whose binary has no bytes, and of one with no members.
    let name = b"\x09\0\0\0kernel.so";
    let with_length = |length: u8| [&name[..], &[0, 0, 0, 0, length, 0, 0, 0, 0, 0, 0, 0]].concat();
    let mut file = forged(&with_length(7), &with_length(0));
    let header = u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize;
    file.drain(header..header + 16);
    set_length(&mut file);
    assert_eq!(
        rejection(file),
        Rejection::Refused(Refusal::EmptyBinary { name: "kernel.so".into() })
    );

    let mut file = self::file();
    let table = file.windows(name.len()).position(|window| window == name).unwrap();
    file[table - 4] = 0;
    let header = table.next_multiple_of(16);
    file[table..header].fill(0);
    let content = file.len() - TRAILER;
    file.drain(header..content);
    file[12..16].copy_from_slice(&(header as u32).to_le_bytes());
    set_length(&mut file);
    assert_eq!(rejection(file), Rejection::Refused(Refusal::NoMembers));
}

fn set_length(file: &mut [u8]) {
    let length = file.len() as u64;
    file[16..24].copy_from_slice(&length.to_le_bytes());
    reseal(file);
}

#[test]
fn a2_what_climbs_or_is_not_what_it_says_is_rejected_although_the_digest_is_right() {
    let climbing = rejection(forged(b"kernel.so", b"../../.so"));
    assert!(matches!(climbing, Rejection::Refused(Refusal::Name { .. })), "{climbing:?}");
    let same = Refusal::SameName { name: "a".into() };
    assert_eq!(forged_to_one_name(), Rejection::Refused(same));
    let text = rejection(forged(b"kernel.so", b"kernel.\xff\xff"));
    assert_eq!(text, Rejection::Malformed { part: "table of members" });
    let json = rejection(forged(b"{\"registers\":32}", b"{\"registers\":32,"));
    assert_eq!(json, Rejection::Malformed { part: "metadata" });
}

#[test]
fn a2_bytes_hidden_between_the_parts_are_rejected() {
    let whole = file();
    let header = u32::from_le_bytes([whole[12], whole[13], whole[14], whole[15]]) as usize;
    // The last bytes of the header's alignment, and of each member's.
    for end in [header, header + 16, whole.len() - TRAILER] {
        assert_eq!(whole[end - 1], 0, "the group was chosen to need zeros here");
        let mut file = whole.clone();
        file[end - 1] = 1;
        reseal(&mut file);
        assert_eq!(rejection(file), Rejection::Malformed { part: "padding" });
    }
    // A whole block behind the last member, that no member has.
    let mut file = whole;
    let content = file.len() - TRAILER;
    file.splice(content..content, [0; 16]);
    set_length(&mut file);
    assert_eq!(rejection(file), Rejection::Malformed { part: "table of members" });
}

fn forged_to_one_name() -> Rejection {
    let group = Group::new("a", vec![1]).with_member("b", vec![2]);
    let mut file = encode(&key(0), &group).expect("a file").to_vec();
    let at = file.windows(5).position(|window| window == b"\x01\0\0\0b").expect("the name");
    file[at + 4] = b'A';
    reseal(&mut file);
    rejection(file)
}

#[test]
fn a2_hostile_lengths_and_counts_come_back() {
    // Any length or count that were believed here would take the memory of the whole machine.
    let whole = file();
    for position in 12..whole.len() - TRAILER - 8 {
        for width in [4, 8] {
            for hostile in [u64::MAX, u64::MAX / 2, 1 << 40, 1 << 31] {
                let mut file = whole.clone();
                file[position..position + width].copy_from_slice(&hostile.to_le_bytes()[..width]);
                reseal(&mut file);
                // Inside members and texts anything goes: what counts is that it comes back.
                let _ = parse(&file.into(), None);
            }
        }
    }
}

#[test]
fn a2_files_that_say_they_are_shorter_than_any_artifact_are_rejected() {
    let whole = file();
    for length in 24..64 + TRAILER {
        let mut file = whole[..length].to_vec();
        file[16..24].copy_from_slice(&(length as u64).to_le_bytes());
        let found = length as u64;
        assert_eq!(rejection(file), Rejection::Truncated { found });
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a2_what_is_larger_than_any_artifact_is_refused_at_both_ends() {
    // Zeros that nobody touches take no memory.
    let mut huge = vec![0; (1 << 32) + 1];
    huge[..24].copy_from_slice(&file()[..24]);
    let found = huge.len() as u64;
    huge[16..24].copy_from_slice(&found.to_le_bytes());
    let huge = Bytes::from(huge);
    assert_eq!(rejection(huge.clone()), Rejection::Overlong { found });
    let refused = encode(&key(0), &Group::new("huge", huge.slice(..1 << 32)));
    assert_eq!(refused, Err(Refusal::TooLarge { what: "the group" }));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        proptest::num::f64::NORMAL.prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(".*", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn any_key()(
        name in ".*",
        target in ".*",
        source in proptest::collection::vec(any::<u8>(), 0..64),
        defines in proptest::collection::btree_map(".*", ".*", 0..5),
        options in proptest::collection::vec(".*", 0..5),
    ) -> KernelKey {
        let builder = KernelKey::builder(name).target(target).source(source);
        let builder = defines.into_iter().fold(builder, |b, (name, value)| b.define(name, value));
        options.into_iter().fold(builder, KernelKeyBuilder::option).build().expect("a key")
    }
}

prop_compose! {
    fn any_group()(
        binary in proptest::collection::vec(any::<u8>(), 1..200),
        others in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..5),
        metadata in proptest::option::of(json_value()),
        toolchain in ".*",
        compile_time in proptest::option::of(0..u64::MAX - 1),
    ) -> Group {
        let group = Group::new("binary", binary).with_toolchain(toolchain);
        let group = others.into_iter().enumerate().fold(group, |group, (i, bytes)| {
            group.with_member(format!("member {i}"), bytes)
        });
        let group = compile_time.into_iter().fold(group, |group, nanos| {
            group.with_compile_time(Duration::from_nanos(nanos))
        });
        metadata.into_iter().fold(group, Group::with_metadata)
    }
}

proptest! {
    #[test]
    fn a1_any_group_under_any_key_comes_back(key in any_key(), group in any_group()) {
        let file = encode(&key, &group).unwrap();
        prop_assert_eq!(&file, &encode(&key, &group).unwrap());
        let entry = parse(&file, Some(&key.fingerprint())).unwrap();
        prop_assert!(entry.fields().map(|(n, v)| (n.into(), v.into())).eq(key.fields()));
        prop_assert_eq!(entry.group(), &group);
    }

    #[test]
    fn a2_any_bytes_come_back_as_a_rejection(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(parse(&bytes.into(), None).is_err());
    }

    /// With a right seal, so that the parser sees it all. What it takes must be a group that may be
    /// stored.
    #[test]
    fn a2_forged_headers_are_rejected_or_harmless(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = file();
        let content = file.len() - TRAILER;
        for (at, byte) in edits {
            file[12 + at.index(content - 12)] = byte;
        }
        reseal(&mut file);
        if let Ok(entry) = parse(&file.into(), None) {
            prop_assert_eq!(entry.group().check(), Ok(()));
        }
    }
}

#[test]
fn a1_json_numbers_survive() {
    let metadata = json!([0.1, 1e300, u64::MAX, i64::MIN, 2.0]);
    let file = encode(&key(0), &group().with_metadata(metadata.clone())).unwrap();
    assert_eq!(parse(&file, None).unwrap().group().metadata(), Some(&metadata));
}
