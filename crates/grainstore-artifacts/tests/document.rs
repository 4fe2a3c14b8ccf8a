//! A file made by hand from `docs/artifact-format.md`, with nothing of the library's own constants
//! or code: what the document says is what is read and written.

use std::time::Duration;

use bytes::Bytes;
use grainstore::{Fingerprint, KernelKey};
use grainstore_artifacts::{Group, Refusal, Rejection, encode, parse};

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

fn align(file: &mut Vec<u8>) {
    while !file.len().is_multiple_of(16) {
        file.push(0);
    }
}

/// The file of the document's parts, in their order.
fn by_hand(
    fingerprint: &[u8; 32],
    compile_time: u64,
    head: [&str; 3],
    fields: &[(&str, &str)],
    members: &[(&str, &[u8])],
) -> Vec<u8> {
    let mut header = Vec::new();
    for part in head {
        header.extend(text(part));
    }
    header.extend((fields.len() as u32).to_le_bytes());
    for (name, value) in fields {
        header.extend(text(name));
        header.extend(text(value));
    }
    header.extend((members.len() as u32).to_le_bytes());
    for (name, bytes) in members {
        header.extend(text(name));
        header.extend([0; 4]); // as they are
        header.extend((bytes.len() as u64).to_le_bytes());
    }

    let mut file = vec![0x89, 0x47, 0x52, 0x4e, 0x0d, 0x0a, 0x1a, 0x0a];
    file.extend([1, 0, 0, 0]); // version
    file.extend([0; 4]); // length of the header: below
    file.extend([0; 8]); // length of the file: below
    file.extend(fingerprint);
    file.extend(compile_time.to_le_bytes());
    assert_eq!(file.len(), 64);
    file.extend(header);
    align(&mut file);
    let header_length = file.len() as u32;
    for (_, bytes) in members {
        file.extend(*bytes);
        align(&mut file);
    }
    let length = file.len() as u64 + 104 + 32;
    file[12..16].copy_from_slice(&header_length.to_le_bytes());
    file[16..24].copy_from_slice(&length.to_le_bytes());

    let signature_block = [0; 104];
    let content = *blake3::hash(&file).as_bytes();
    let seal = *blake3::hash(&[&content[..], &signature_block].concat()).as_bytes();
    file.extend(signature_block);
    file.extend(seal);
    file
}

#[test]
fn a1_a_file_made_from_the_document_is_read() {
    let fingerprint: [u8; 32] = std::array::from_fn(|i| i as u8);
    let file = by_hand(
        &fingerprint,
        30_000_000,
        ["kernel", "cc 12.2.0", r#"{"registers":32}"#],
        &[("name", "saxpy"), ("target", "x86_64")],
        &[("saxpy.so", b"\x7fELF of seventeen"), ("log", b""), ("saxpy.c", b"void saxpy();")],
    );
    let entry = parse(&Bytes::from(file), None).unwrap();
    assert_eq!(entry.fingerprint(), Fingerprint::from_bytes(fingerprint));
    assert_eq!(entry.namespace(), "kernel");
    let fields: Vec<_> = entry.fields().collect();
    assert_eq!(fields, [("name", "saxpy"), ("target", "x86_64")]);
    let expected = Group::new("saxpy.so", &b"\x7fELF of seventeen"[..])
        .with_member("log", vec![])
        .with_member("saxpy.c", &b"void saxpy();"[..])
        .with_metadata(serde_json::json!({ "registers": 32 }))
        .with_toolchain("cc 12.2.0")
        .with_compile_time(Duration::from_millis(30));
    assert_eq!(entry.group(), &expected);
}

#[test]
fn a1_what_the_document_leaves_out_is_unknown() {
    let file = by_hand(&[7; 32], u64::MAX, ["kernel", "", ""], &[], &[("k", b"1")]);
    let entry = parse(&Bytes::from(file), None).unwrap();
    assert_eq!(entry.group(), &Group::new("k", vec![b'1']));
    assert_eq!(entry.fields().count(), 0);
}

#[test]
fn a1_what_is_written_is_the_document_byte_for_byte() {
    let key = KernelKey::builder("saxpy").target("x86_64").language("c").build().unwrap();
    let fields: Vec<_> = key.fields().map(|(n, v)| (n.into_owned(), v.into_owned())).collect();
    let fields: Vec<_> = fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let expected = by_hand(
        key.fingerprint().as_bytes(),
        u64::MAX,
        ["kernel", "", "[1,true]"],
        &fields,
        &[("saxpy.so", b"ELF"), ("saxpy.c", b"void saxpy();")],
    );
    let group = Group::new("saxpy.so", &b"ELF"[..])
        .with_member("saxpy.c", &b"void saxpy();"[..])
        .with_metadata(serde_json::json!([1, true]));
    assert_eq!(encode(&key, &group).unwrap(), expected);
}

#[test]
fn a2_the_documents_limits_hold_for_readers() {
    let metadata = |length: usize| {
        let json = format!("\"{}\"", "m".repeat(length - 2));
        let file = by_hand(&[7; 32], 0, ["kernel", "", &json], &[], &[("k", b"1")]);
        parse(&Bytes::from(file), None).map(|_| ())
    };
    assert_eq!(metadata(65_536), Ok(()));
    let refusal = Refusal::MetadataTooLong { length: 65_537 };
    assert_eq!(metadata(65_537), Err(Rejection::Refused(refusal)));

    let members = |count: usize| {
        let names: Vec<_> = (0..count).map(|number| number.to_string()).collect();
        let members: Vec<_> = names.iter().map(|name| (name.as_str(), &b"1"[..])).collect();
        let file = by_hand(&[7; 32], 0, ["kernel", "", ""], &[], &members);
        parse(&Bytes::from(file), None).map(|_| ())
    };
    assert_eq!(members(1024), Ok(()));
    let refusal = Refusal::TooManyMembers { count: 1025 };
    assert_eq!(members(1025), Err(Rejection::Refused(refusal)));
}
