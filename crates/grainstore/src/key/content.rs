//! What stands in a key for a source or a header: its length and its digest.

use std::fmt;

/// A source or a header, as a key remembers it: its length and its BLAKE3 hash, not its bytes.
///
/// So a key stays small however large the source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentId {
    length: u64,
    digest: [u8; 32],
}

impl ContentId {
    /// The identity of these bytes.
    #[must_use]
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        Self { length: bytes.len() as u64, digest: *blake3::hash(bytes).as_bytes() }
    }

    /// How many bytes it has.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The BLAKE3 hash of its bytes.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.length == 1 { "byte" } else { "bytes" };
        write!(f, "{} {unit}, BLAKE3 {}", self.length, blake3::Hash::from_bytes(self.digest))
    }
}
