//! Why bytes are not the artifact that was asked for.

use std::fmt;

use grainstore::Fingerprint;

use crate::Refusal;

/// One reason for each way in which a file can be wrong. A store counts it as a miss.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// There are no bytes.
    Empty,
    /// It does not begin as an artifact does.
    NotAnArtifact,
    /// It is of another version of the format.
    Version {
        /// Which one.
        found: u32,
    },
    /// It is shorter than its header says, or than any artifact is.
    Truncated {
        /// How long it is.
        found: u64,
    },
    /// It is longer than its header says.
    Overlong {
        /// How long it is.
        found: u64,
    },
    /// Its digest is not that of its bytes.
    Digest,
    /// It is whole, but of another key: a file that was renamed.
    Fingerprint {
        /// The fingerprint of its key.
        found: Fingerprint,
    },
    /// It has the fingerprint, but not the fields, of the key.
    Key,
    /// Its signature block says something that this version does not know.
    Signature,
    /// Its digest is right, but not what it covers: whoever wrote it did it wrong.
    Malformed {
        /// Which part.
        part: &'static str,
    },
    /// It is whole, and holds a group that may not be stored.
    Refused(Refusal),
}

impl Rejection {
    /// A short name for each reason, in the order of [`index`](Self::index).
    pub(crate) const NAMES: [&'static str; 11] = [
        "empty",
        "not-an-artifact",
        "version",
        "truncated",
        "overlong",
        "digest",
        "fingerprint",
        "key",
        "signature",
        "malformed",
        "refused",
    ];

    /// A short name for the reason, for figures: `digest`, `truncated`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        Self::NAMES[self.index()]
    }

    pub(crate) fn index(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::NotAnArtifact => 1,
            Self::Version { .. } => 2,
            Self::Truncated { .. } => 3,
            Self::Overlong { .. } => 4,
            Self::Digest => 5,
            Self::Fingerprint { .. } => 6,
            Self::Key => 7,
            Self::Signature => 8,
            Self::Malformed { .. } => 9,
            Self::Refused(_) => 10,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::NotAnArtifact => f.write_str("the file is not an artifact"),
            Self::Version { found } => write!(
                f,
                "the file is of version {found} of the format, this program reads {}",
                super::VERSION
            ),
            Self::Truncated { found } => write!(f, "the file is cut short at {found} bytes"),
            Self::Overlong { found } => {
                write!(f, "the file has {found} bytes, more than its header says")
            }
            Self::Digest => f.write_str("the file's digest is not that of its bytes"),
            Self::Fingerprint { found } => write!(f, "the file belongs to another key, {found}"),
            Self::Key => f.write_str("the file was made for a key of other fields"),
            Self::Signature => f.write_str("the file has a signature of an unknown kind"),
            Self::Malformed { part } => write!(f, "the file's {part} is malformed"),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for Rejection {}
