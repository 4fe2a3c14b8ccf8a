//! The file format, version 1: bytes in, bytes out, no I/O.
//!
//! `docs/artifact-format.md` describes it byte by byte. In short, all numbers little-endian:
//!
//! ```text
//! fixed header      64 bytes: magic, version, lengths, fingerprint, compile time
//! variable header   namespace, toolchain, metadata, the key's fields, the table of members
//! members           each at a multiple of 16, with zeros between
//! signature block   104 bytes, all zero where nothing is signed
//! seal              32 bytes: BLAKE3 over (BLAKE3 over what comes before the block), and the block
//! ```
//!
//! Two digests in a row are what lets a signature be added: it signs the inner one, which does not
//! cover it, while the seal covers it, so that no bit of the file is free to flip.

mod cursor;
mod encode;
mod parse;
mod rejection;
mod signature;

pub(crate) use cursor::Cursor;
pub use encode::encode;
pub use parse::{Entry, Fields, parse};
pub use rejection::Rejection;
pub use signature::Signature;

/// The version of the format that this crate writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// First eight bytes of every artifact. Not text, and damaged by whatever changes line ends.
pub(crate) const MAGIC: [u8; 8] = *b"\x89GRN\r\n\x1a\n";
/// Length of the header's fixed part.
pub(crate) const FIXED: usize = 64;
/// What a file's members are aligned to, so that loaders may read them in place: what allocators
/// give to the buffer that the file is read into.
pub(crate) const ALIGN: usize = 16;
/// Length of the signature block: algorithm, reserved, public key, signature.
pub(crate) const SIGNATURE: usize = 4 + 4 + 32 + 64;
/// Length of the seal.
pub(crate) const SEAL: usize = 32;
/// Length of what comes after the members.
pub(crate) const TRAILER: usize = SIGNATURE + SEAL;
/// The compile time that means unknown.
pub(crate) const UNKNOWN_TIME: u64 = u64::MAX;
/// The largest file. A header that claims more is wrong, and a reader need not find out.
pub(crate) const MAX_FILE: u64 = 1 << 32;

/// How a member's bytes are kept: as they are. Others may follow.
pub(crate) const PLAIN: u32 = 0;

/// The digest of what a file holds: what a signature is made over.
pub(crate) fn content_digest(content: &[u8]) -> [u8; SEAL] {
    *blake3::hash(content).as_bytes()
}

/// The digest that closes a file.
pub(crate) fn seal(content_digest: &[u8; SEAL], signature: &[u8]) -> [u8; SEAL] {
    let mut outer = blake3::Hasher::new();
    outer.update(content_digest);
    outer.update(signature);
    *outer.finalize().as_bytes()
}

/// `length` rounded up to the alignment of members.
pub(crate) fn aligned(length: u64) -> Option<u64> {
    length.checked_next_multiple_of(ALIGN as u64)
}
