//! The canonical encoding of keys, of which a fingerprint is the BLAKE3 hash.
//!
//! Equal keys have one encoding, and two keys that differ have two: every part is framed by its
//! length, so that an encoding can be read back in one way only. It depends on nothing but the key:
//! not on the process, the machine, its byte order, or the release of this crate. What follows is
//! version 0; whatever changes a byte of it changes the version, and with it every fingerprint.
//!
//! All integers are little-endian. Text is UTF-8, byte for byte as it was given.
//!
//! ```text
//! key      = magic kind version record*
//! magic    = "GRAINKEY"                                      8 bytes
//! kind     = 01 for a KernelKey, 02 for a PlanKey            1 byte
//! version  = 00                                              1 byte
//! record   = tag length payload
//! tag      = the field, from the tables below                1 byte
//! length   = of the payload, u64                             8 bytes
//! payload  = what the tables below say                       `length` bytes
//! framed   = length, u64, then as many bytes of text         8 + length bytes
//! ```
//!
//! The records of a `KernelKey`, in this order:
//!
//! ```text
//! tag  field      how often               payload
//! 01   name       once                    text
//! 02   entry      once if there is one    text
//! 03   target     once                    text
//! 04   toolchain  once                    text
//! 05   language   once                    text
//! 06   source     once                    content
//! 07   header     once each, by name      framed name, content
//! 08   define     once each, by name      framed name, then the value's text
//! 09   constant   once each, by name      framed name, then the value's text
//! 0a   option     once each, as given     text
//!
//! content = length of the source or header, u64              8 bytes
//!           BLAKE3 hash of its bytes                         32 bytes
//! ```
//!
//! Those of a `PlanKey`, in this order:
//!
//! ```text
//! tag  field           how often           payload
//! 01   artifact        once                text
//! 02   target          once                text
//! 03   compiler        once                text
//! 04   specialization  once                text
//! 05   scalar          once each, by name  framed name, then the value's text
//! 06   input           once each, as given tensor
//! 07   output          once each, as given tensor
//!
//! tensor  = framed name of the element type
//!           elements per block, u32                          4 bytes
//!           bytes per block, u32                             4 bytes
//!           rank, u64                                        8 bytes
//!           size of each dimension, u64                      8 bytes each
//!           stride of each dimension, i64                    8 bytes each
//!           framed name of the layout
//! ```
//!
//! "By name" means in ascending order of the names' bytes. A field that was not given, where the
//! table says "once", is there with an empty text, or as the content of no bytes. A field that a
//! later release adds gets a tag of its own and is written only where it is used, so that the
//! fingerprints of keys without it stay.

use super::content::ContentId;
use super::kernel::KernelParts;
use super::plan::PlanParts;
use super::tensor::TensorDesc;

const MAGIC: &[u8; 8] = b"GRAINKEY";
const VERSION: u8 = 0;
const KERNEL: u8 = 1;
const PLAN: u8 = 2;

/// The encoding of a `KernelKey` whose named fields are sorted, each name there once.
pub(super) fn kernel(parts: &KernelParts) -> Vec<u8> {
    let mut encoder = Encoder::new(KERNEL);
    encoder.text(0x01, &parts.name);
    if let Some(entry) = &parts.entry {
        encoder.text(0x02, entry);
    }
    encoder.text(0x03, &parts.target);
    encoder.text(0x04, &parts.toolchain);
    encoder.text(0x05, &parts.language);
    encoder.record(0x06, |bytes| content(bytes, &parts.source));
    for (name, header) in &parts.headers {
        encoder.record(0x07, |bytes| {
            framed(bytes, name);
            content(bytes, header);
        });
    }
    for (name, value) in &parts.defines {
        encoder.pair(0x08, name, value);
    }
    for (name, value) in &parts.constants {
        encoder.pair(0x09, name, value);
    }
    for option in &parts.options {
        encoder.text(0x0a, option);
    }
    encoder.bytes
}

/// The encoding of a `PlanKey` whose scalars are sorted, each name there once.
pub(super) fn plan(parts: &PlanParts) -> Vec<u8> {
    let mut encoder = Encoder::new(PLAN);
    encoder.text(0x01, &parts.artifact);
    encoder.text(0x02, &parts.target);
    encoder.text(0x03, &parts.compiler);
    encoder.text(0x04, &parts.specialization);
    for (name, value) in &parts.scalars {
        encoder.pair(0x05, name, value);
    }
    for input in &parts.inputs {
        encoder.record(0x06, |bytes| tensor(bytes, input));
    }
    for output in &parts.outputs {
        encoder.record(0x07, |bytes| tensor(bytes, output));
    }
    encoder.bytes
}

struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    fn new(kind: u8) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(MAGIC);
        bytes.extend([kind, VERSION]);
        Self { bytes }
    }

    /// A record with the payload that `write` appends.
    fn record(&mut self, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.push(tag);
        let length_at = self.bytes.len();
        self.bytes.extend([0; 8]);
        let start = self.bytes.len();
        write(&mut self.bytes);
        let length = (self.bytes.len() - start) as u64;
        self.bytes[length_at..start].copy_from_slice(&length.to_le_bytes());
    }

    fn text(&mut self, tag: u8, text: &str) {
        self.record(tag, |bytes| bytes.extend_from_slice(text.as_bytes()));
    }

    fn pair(&mut self, tag: u8, name: &str, value: &str) {
        self.record(tag, |bytes| {
            framed(bytes, name);
            bytes.extend_from_slice(value.as_bytes());
        });
    }
}

fn framed(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn content(bytes: &mut Vec<u8>, content: &ContentId) {
    bytes.extend(content.length().to_le_bytes());
    bytes.extend_from_slice(content.digest());
}

fn tensor(bytes: &mut Vec<u8>, tensor: &TensorDesc) {
    let element = tensor.element();
    framed(bytes, element.name());
    bytes.extend(element.elements_per_block().to_le_bytes());
    bytes.extend(element.bytes_per_block().to_le_bytes());
    bytes.extend((tensor.shape().len() as u64).to_le_bytes());
    for size in tensor.shape() {
        bytes.extend(size.to_le_bytes());
    }
    for stride in tensor.strides() {
        bytes.extend(stride.to_le_bytes());
    }
    framed(bytes, tensor.layout());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ElementType;

    /// An encoding written out by hand, its lengths counted by hand.
    fn spelled(kind: u8, records: &[(u8, u64, &[&[u8]])]) -> Vec<u8> {
        let mut bytes = b"GRAINKEY".to_vec();
        bytes.extend([kind, 0]);
        for (tag, length, payload) in records {
            bytes.push(*tag);
            bytes.extend(n(*length));
            bytes.extend(payload.concat());
        }
        bytes
    }

    const fn n(number: u64) -> [u8; 8] {
        number.to_le_bytes()
    }

    #[test]
    fn k5_kernel_byte_by_byte() {
        let parts = KernelParts {
            name: "saxpy".into(),
            entry: Some("main".into()),
            target: "sm_90a".into(),
            toolchain: "nvrtc 12.9".into(),
            language: "cuda-c++".into(),
            source: ContentId::of("source"),
            headers: vec![("common.h".into(), ContentId::of("header"))],
            defines: vec![("BLOCK".into(), "128".into())],
            constants: vec![("0".into(), "".into())],
            options: vec!["-O3".into(), "-g".into()],
        };
        let source = blake3::hash(b"source");
        let header = blake3::hash(b"header");
        let expected = spelled(
            1,
            &[
                (0x01, 5, &[b"saxpy"]),
                (0x02, 4, &[b"main"]),
                (0x03, 6, &[b"sm_90a"]),
                (0x04, 10, &[b"nvrtc 12.9"]),
                (0x05, 8, &[b"cuda-c++"]),
                (0x06, 40, &[&n(6), source.as_bytes()]),
                (0x07, 56, &[&n(8), b"common.h", &n(6), header.as_bytes()]),
                (0x08, 16, &[&n(5), b"BLOCK", b"128"]),
                (0x09, 9, &[&n(1), b"0"]),
                (0x0a, 3, &[b"-O3"]),
                (0x0a, 2, &[b"-g"]),
            ],
        );
        assert_eq!(kernel(&parts), expected);
    }

    #[test]
    fn k5_plan_byte_by_byte() {
        let scalar = TensorDesc::contiguous(ElementType::F4E2M1FN, &[]).unwrap();
        let matrix = TensorDesc::strided(ElementType::F16, &[2, 3], &[-3, 1], "nc").unwrap();
        let parts = PlanParts {
            artifact: "sha256:ab".into(),
            target: "sm_90a".into(),
            compiler: "nvrtc".into(),
            specialization: "f<64>".into(),
            scalars: vec![("scale".into(), "0.5".into())],
            inputs: vec![scalar],
            outputs: vec![matrix],
        };
        let block = [[2, 0, 0, 0], [1, 0, 0, 0]].concat();
        let single = [[1, 0, 0, 0], [2, 0, 0, 0]].concat();
        let backwards = (-3i64).to_le_bytes();
        let expected = spelled(
            2,
            &[
                (0x01, 9, &[b"sha256:ab"]),
                (0x02, 6, &[b"sm_90a"]),
                (0x03, 5, &[b"nvrtc"]),
                (0x04, 5, &[b"f<64>"]),
                (0x05, 16, &[&n(5), b"scale", b"0.5"]),
                (0x06, 49, &[&n(8), b"f4e2m1fn", &block, &n(0), &n(9), b"row-major"]),
                (
                    0x07,
                    69,
                    &[
                        &[&n(3), &b"f16"[..], &single, &n(2)].concat(),
                        &[n(2), n(3), backwards, n(1)].concat(),
                        &[&n(2), &b"nc"[..]].concat(),
                    ],
                ),
            ],
        );
        assert_eq!(plan(&parts), expected);
    }

    #[test]
    fn k5_fields_that_were_not_given_are_there_and_empty() {
        let nothing = blake3::hash(b"");
        let expected = spelled(
            1,
            &[
                (0x01, 0, &[]),
                (0x03, 0, &[]),
                (0x04, 0, &[]),
                (0x05, 0, &[]),
                (0x06, 40, &[&n(0), nothing.as_bytes()]),
            ],
        );
        assert_eq!(kernel(&KernelParts::default()), expected);
        let expected =
            spelled(2, &[(0x01, 0, &[]), (0x02, 0, &[]), (0x03, 0, &[]), (0x04, 0, &[])]);
        assert_eq!(plan(&PlanParts::default()), expected);
    }
}
