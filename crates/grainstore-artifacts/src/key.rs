//! What an artifact is stored under.

use std::borrow::Cow;

use grainstore::{Fingerprint, KernelKey, PlanKey};

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
pub(crate) const KERNELS: &str = "kernel";
/// The namespace of [`PlanKey`].
pub(crate) const PLANS: &str = "plan";

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

impl EntryKey for PlanKey {
    fn fingerprint(&self) -> Fingerprint {
        self.fingerprint()
    }

    fn namespace(&self) -> &str {
        PLANS
    }

    fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        self.fields()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for grainstore::KernelKey {}
    impl Sealed for grainstore::PlanKey {}
    impl Sealed for crate::ForeignKey {}
}
