//! A key's parts, frozen and hashed once: what makes a look-up by a large key cheap.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::fingerprint::Fingerprint;

/// Parts that never change again, with their canonical encoding and its fingerprint.
///
/// The fingerprint lies in the handle itself, so that hashing, and comparing with a key that
/// differs, follow no pointer. A clone shares the rest.
pub(super) struct Hashed<P> {
    fingerprint: Fingerprint,
    body: Arc<Body<P>>,
}

struct Body<P> {
    /// Equal exactly where the parts are: the encoding is canonical, and it can be decoded. So
    /// comparing keys is comparing one run of bytes.
    encoding: Box<[u8]>,
    parts: P,
}

impl<P> Hashed<P> {
    /// Freezes these parts; `encoding` is theirs.
    pub(super) fn new(parts: P, encoding: Vec<u8>) -> Self {
        let fingerprint = Fingerprint::of(&encoding);
        Self { fingerprint, body: Arc::new(Body { encoding: encoding.into_boxed_slice(), parts }) }
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(super) fn parts(&self) -> &P {
        &self.body.parts
    }
}

impl<P> Clone for Hashed<P> {
    fn clone(&self) -> Self {
        Self { fingerprint: self.fingerprint, body: Arc::clone(&self.body) }
    }
}

impl<P> PartialEq for Hashed<P> {
    /// Clones of one key are equal by their pointer. Otherwise the fingerprint says at once that two
    /// keys differ; that they are equal, the encodings confirm.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.body, &other.body)
            || (self.fingerprint == other.fingerprint && self.body.encoding == other.body.encoding)
    }
}

impl<P> Eq for Hashed<P> {}

impl<P> Hash for Hashed<P> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records what is written to it.
    #[derive(Default)]
    struct Recorder(Vec<u64>);

    impl Hasher for Recorder {
        fn write(&mut self, bytes: &[u8]) {
            panic!("a key hashed the bytes {bytes:?}");
        }

        fn write_u64(&mut self, value: u64) {
            self.0.push(value);
        }

        fn finish(&self) -> u64 {
            0
        }
    }

    #[test]
    fn k4_hashing_writes_one_u64_of_the_fingerprint() {
        let key = Hashed::new((), b"some long encoding".to_vec());
        let mut recorder = Recorder::default();
        key.hash(&mut recorder);
        let first: [u8; 8] = key.fingerprint().as_bytes()[..8].try_into().unwrap();
        assert_eq!(recorder.0, [u64::from_le_bytes(first)]);
    }

    #[test]
    fn k4_keys_made_apart_are_equal_and_clones_share() {
        let key = Hashed::new((), b"one".to_vec());
        assert!(key == Hashed::new((), b"one".to_vec()));
        assert!(key != Hashed::new((), b"two".to_vec()));
        assert!(Arc::ptr_eq(&key.body, &key.clone().body));
    }

    #[test]
    fn k4_equal_fingerprints_do_not_make_equal_keys() {
        let one = Hashed::new((), b"one".to_vec());
        let mut two = Hashed::new((), b"two".to_vec());
        two.fingerprint = one.fingerprint;
        assert!(one != two);
    }
}
