//! Why the store could not do what it was asked. None of it need stop a caller who can compile.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::Refusal;
use crate::trust::Distrust;

/// An error of the store. Its text says what failed, where, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no folder to keep artifacts in: the user has no home, and none was named.
    NoLocation,
    /// Others could have changed what would be loaded from here.
    Untrusted {
        /// The file or folder that they could have changed.
        path: PathBuf,
        /// Why.
        distrust: Distrust,
    },
    /// The store was opened to be used and not changed.
    UseOnly,
    /// Loading the artifact ended the process, twice: it is not handed out.
    Quarantined {
        /// The file that says so.
        record: PathBuf,
    },
    /// The group may not be stored.
    Refused(Refusal),
    /// The operating system said no.
    Io {
        /// What was tried: `read`, `create`.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What came back.
        error: io::Error,
    },
}

impl Error {
    /// For `map_err`: what was tried on which path.
    pub(crate) fn io(what: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, path: path.as_ref().to_owned(), error }
    }
}

/// What a user can do about an error of the operating system.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space (or inodes) there, or set GRAINSTORE_DIR to a folder that has some"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "make it writable for this user, or set GRAINSTORE_DIR to a folder that is"
        }
        io::ErrorKind::NotADirectory
        | io::ErrorKind::AlreadyExists
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::DirectoryNotEmpty => {
            "something else is in the way: move it, or set GRAINSTORE_DIR to another folder"
        }
        io::ErrorKind::FileTooLarge => "this is no artifact: remove it",
        _ => "set GRAINSTORE_DIR to a folder that works, if this one does not",
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLocation => f.write_str(
                "this user has no home folder to keep compiled kernels in: set GRAINSTORE_DIR to \
                 a folder of this user's own",
            ),
            Self::Untrusted { path, distrust } => distrust.explain(path, f),
            Self::UseOnly => f.write_str(
                "this store was opened only to be used (`use_only`), so nothing in it can be \
                 changed: open it without that option",
            ),
            Self::Quarantined { record } => write!(
                f,
                "loading this artifact ended the process twice, so it is not loaded again, and \
                 compiled at each start until its compiler or driver changes; to try it again, \
                 remove {}",
                record.display()
            ),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Io { what, path, error } => {
                let path = path.display();
                write!(f, "could not {what} {path}: {error}; {}", advice(error))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The other variants' texts are whole, with nothing below them.
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
