//! The signature block: room for one Ed25519 signature over the digest of the content.
//!
//! This crate neither makes nor checks signatures: it says what is in the block. Whoever has trusted
//! keys checks the signature against [`Entry::content_digest`](super::Entry::content_digest), and
//! nobody else needs it.

use bytes::Bytes;

use super::cursor::Cursor;
use super::{Rejection, SEAL, SIGNATURE, TRAILER, parse, seal};

const ED25519: u32 = 1;

/// An Ed25519 signature, and the key that is said to have made it. Unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The public key.
    pub public_key: [u8; 32],
    /// The signature over the digest of the content.
    pub signature: [u8; 64],
}

impl Signature {
    /// The file with this signature in the place of whatever it had. Its content, and so what is
    /// signed, stays.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn put_into(&self, file: &Bytes) -> Result<Bytes, Rejection> {
        let entry = parse(file, None)?;
        let mut signed = file.to_vec();
        let block = self.block();
        let at = signed.len() - TRAILER;
        signed[at..at + SIGNATURE].copy_from_slice(&block);
        signed[at + SIGNATURE..].copy_from_slice(&seal(entry.content_digest(), &block));
        Ok(signed.into())
    }

    fn block(&self) -> [u8; SIGNATURE] {
        let mut block = [0; SIGNATURE];
        block[..4].copy_from_slice(&ED25519.to_le_bytes());
        block[8..40].copy_from_slice(&self.public_key);
        block[40..].copy_from_slice(&self.signature);
        block
    }

    /// What is in this block: zeros are no signature, and what is neither is a rejection.
    pub(super) fn read(block: &[u8]) -> Result<Option<Self>, Rejection> {
        if block == [0; SIGNATURE] {
            return Ok(None);
        }
        let mut cursor = Cursor::new(block);
        let mut whole = || {
            let is_known = cursor.u32()? == ED25519 && cursor.u32()? == 0;
            let signature = Self { public_key: cursor.array()?, signature: cursor.array()? };
            is_known.then_some(signature)
        };
        whole().map(Some).ok_or(Rejection::Signature)
    }
}

/// The parts of a trailer are where the constants say.
const _: () = assert!(SIGNATURE == 40 + 64 && TRAILER == SIGNATURE + SEAL);
