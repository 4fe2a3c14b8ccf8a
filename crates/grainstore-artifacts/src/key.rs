//! What an artifact is stored under.

use std::borrow::Cow;

use grainstore::{Fingerprint, KernelKey};

/// A key of the store: a fingerprint, which names the file, and what a reader can tell of it.
///
/// Implemented by the kinds of keys that the store knows, and by nobody else: a fingerprint is only
/// worth something if everything that it stands for went into it.
pub trait EntryKey: sealed::Sealed {
    /// The digest of the key, under which its file is found.
    fn fingerprint(&self) -> Fingerprint;

    /// Whose keys these are. Keys of one namespace belong together.
    fn namespace(&self) -> &str;

    /// The key in words: names, each once, and values.
    fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)>;
}

/// The namespace of [`KernelKey`].
const KERNELS: &str = "kernel";

impl EntryKey for KernelKey {
    fn fingerprint(&self) -> Fingerprint {
        self.fingerprint()
    }

    fn namespace(&self) -> &str {
        KERNELS
    }

    fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        self.fields()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for grainstore::KernelKey {}
}
