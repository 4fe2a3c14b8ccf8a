//! Keys made by others: another compiler's own hash, an autotuner's record for a kernel and a shape.

use std::borrow::Cow;
use std::fmt;

use grainstore::Fingerprint;

use crate::key::{EntryKey, KERNELS, PLANS};

/// A key that somebody else made: a namespace, which says whose it is, and bytes.
///
/// The bytes must hold everything that changes what is stored; two keys are the same where namespace
/// and bytes are. What a person should read about it goes into the group's
/// [metadata](crate::Group::with_metadata).
///
/// ```
/// use grainstore_artifacts::ForeignKey;
/// let key = ForeignKey::new("triton", "f0e1d2c3-matmul-128x128")?;
/// assert_eq!(key.namespace(), "triton");
/// # Ok::<(), grainstore_artifacts::NamespaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForeignKey {
    fingerprint: Fingerprint,
    namespace: String,
    bytes: Vec<u8>,
}

impl ForeignKey {
    /// The key of these bytes in this namespace: 1 to 64 letters, digits and `-`, `_`, `.`, such as
    /// the name of the program that makes the keys, and none of the store's own.
    ///
    /// # Errors
    /// If the namespace is no such name.
    pub fn new(
        namespace: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<Self, NamespaceError> {
        let (namespace, bytes) = (namespace.into(), bytes.into());
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if namespace.is_empty() || namespace.len() > 64 || !namespace.bytes().all(plain) {
            return Err(NamespaceError { namespace, why: "it is no short plain name" });
        }
        if [KERNELS, PLANS].contains(&namespace.as_str()) {
            return Err(NamespaceError { namespace, why: "the store's own keys have it" });
        }
        let fingerprint = fingerprint(&namespace, &bytes);
        Ok(Self { fingerprint, namespace, bytes })
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The digest of an encoding like those of our own keys, which it differs from in its kind: each part
/// is framed by its length, so no two keys have one encoding.
fn fingerprint(namespace: &str, bytes: &[u8]) -> Fingerprint {
    const KIND: u8 = 3;
    const VERSION: u8 = 0;
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"GRAINKEY").update(&[KIND, VERSION]);
    for (tag, part) in [(1, namespace.as_bytes()), (2, bytes)] {
        hasher.update(&[tag]).update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    Fingerprint::from_bytes(*hasher.finalize().as_bytes())
}

impl EntryKey for ForeignKey {
    fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The bytes as text where that is what they are, else in hexadecimal digits; long ones by their
    /// length and digest.
    fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        const LONG: usize = 1024;
        let text = std::str::from_utf8(&self.bytes).ok();
        let text = text.filter(|text| !text.chars().any(char::is_control));
        let field: (Cow<'_, str>, Cow<'_, str>) = match text {
            _ if self.bytes.len() > LONG => {
                let digest = blake3::hash(&self.bytes);
                let value = format!("{} bytes, BLAKE3 {digest}", self.bytes.len());
                ("key by digest".into(), value.into())
            }
            Some(text) => ("key".into(), text.into()),
            None => {
                let hex = self.bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                ("key in hex".into(), hex.into())
            }
        };
        std::iter::once(field)
    }
}

/// Why a text can't be the namespace of foreign keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceError {
    namespace: String,
    why: &'static str,
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` can't be a namespace, since {}: use up to 64 letters, digits, `-`, `_` and `.`, \
             such as the name of the program that makes the keys",
            self.namespace.escape_debug(),
            self.why
        )
    }
}

impl std::error::Error for NamespaceError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(namespace: &str, bytes: &[u8]) -> ForeignKey {
        ForeignKey::new(namespace, bytes).unwrap()
    }

    #[test]
    fn a9_the_encoding_is_the_documented_one() {
        let encoding = b"GRAINKEY\x03\x00\x01\x06\0\0\0\0\0\0\0triton\x02\x03\0\0\0\0\0\0\0abc";
        let expected = Fingerprint::from_bytes(*blake3::hash(encoding).as_bytes());
        assert_eq!(EntryKey::fingerprint(&key("triton", b"abc")), expected);
    }

    #[test]
    fn a9_namespaces_are_short_plain_names_and_not_ours() {
        for bad in ["", "kernel", "plan", "a b", "a/b", "é", "x\n", &"n".repeat(65)] {
            let error = ForeignKey::new(bad, *b"k").unwrap_err().to_string();
            assert!(error.contains("namespace"), "{error}");
        }
        for good in ["triton", "my-tuner_2.0", &"n".repeat(64)] {
            assert!(ForeignKey::new(good, *b"k").is_ok(), "{good}");
        }
    }

    #[test]
    fn a9_the_bytes_are_shown_as_what_they_are() {
        let shown = |bytes: &[u8]| {
            let key = key("n", bytes);
            let field = key.fields().map(|(name, value)| format!("{name}: {value}")).next();
            field.unwrap()
        };
        assert_eq!(shown(b"abc def"), "key: abc def");
        assert_eq!(shown(b""), "key: ");
        assert_eq!(shown(b"\x00\xffz"), "key in hex: 00ff7a");
        assert!(shown(&[b'x'; 2000]).starts_with("key by digest: 2000 bytes, BLAKE3 "));
    }

    proptest! {
        #[test]
        fn a9_different_keys_never_collide_by_concatenation(
            one in ("[a-z]{1,8}", proptest::collection::vec(any::<u8>(), 0..8)),
            other in ("[a-z]{1,8}", proptest::collection::vec(any::<u8>(), 0..8)),
        ) {
            prop_assume!(![&one.0, &other.0].iter().any(|n| ["plan", "kernel"].contains(&n.as_str())));
            let equal = one == other;
            let (one, other) = (key(&one.0, &one.1), key(&other.0, &other.1));
            prop_assert_eq!(one.fingerprint == other.fingerprint, equal);
            // Moving a byte from one part to the next makes another key.
            if let Some((last, rest)) = one.namespace.as_bytes().split_last() && !rest.is_empty() {
                let namespace = std::str::from_utf8(rest).unwrap();
                let moved = ForeignKey::new(namespace, [&[*last], &one.bytes[..]].concat());
                prop_assert!(moved.map_or(true, |moved| moved.fingerprint != one.fingerprint));
            }
        }
    }
}
