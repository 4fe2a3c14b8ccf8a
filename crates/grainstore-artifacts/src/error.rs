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
        /// The bundle or layer that was to be read, where it was not the store itself.
        layer: Option<PathBuf>,
    },
    /// The store was opened to be used and not changed.
    UseOnly,
    /// Whoever opened the store wanted the call to end: see
    /// [`Options::stop_when`](crate::Options::stop_when).
    Stopped,
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
    /// A bundle can't be read or written, or is none.
    Bundle {
        /// What was tried: `open`, `read`, `create`, `write`.
        what: &'static str,
        /// Where it is, or was to be.
        path: PathBuf,
        /// What came back.
        error: io::Error,
    },
}

impl Error {
    /// What is not trusted, on the way to the store or in it.
    #[cfg(unix)]
    pub(crate) fn untrusted(path: impl Into<PathBuf>, distrust: Distrust) -> Self {
        Self::Untrusted { path: path.into(), distrust, layer: None }
    }

    /// For `map_err`: the same on the way to this bundle or layer, or in it.
    pub(crate) fn below(layer: impl AsRef<Path>) -> impl FnOnce(Self) -> Self {
        move |error| match error {
            Self::Untrusted { path, distrust, .. } => {
                Self::Untrusted { path, distrust, layer: Some(layer.as_ref().to_owned()) }
            }
            other => other,
        }
    }

    /// For `map_err`: what was tried on which path.
    pub(crate) fn io(what: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, path: path.as_ref().to_owned(), error }
    }

    /// The same for a bundle, which need not lie where the store does.
    pub(crate) fn bundle(
        what: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            // What writes an archive knows the system's errors alone: a stop comes as one of them.
            let own = error.get_ref().and_then(|inner| inner.downcast_ref());
            if matches!(own, Some(Self::Stopped)) {
                return Self::Stopped;
            }
            Self::Bundle { what, path: path.as_ref().to_owned(), error }
        }
    }
}

/// What a user can do about an error of the operating system with the store.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space (or inodes) there, or set GRAINSTORE_DIR to a folder that has some"
        }
        io::ErrorKind::ReadOnlyFilesystem => "set GRAINSTORE_DIR to a folder that can be written",
        io::ErrorKind::PermissionDenied => {
            "let this user read and write there, or set GRAINSTORE_DIR to a folder where it may"
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

/// And with a bundle; nothing, where the error says it.
fn advice_on_bundle(writes: bool, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound if writes => "; make the folder that it is to lie in first",
        io::ErrorKind::PermissionDenied if !writes => "; let this user read it",
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "; name a place where this user may write"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space there, or name another place"
        }
        io::ErrorKind::NotADirectory
        | io::ErrorKind::AlreadyExists
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::DirectoryNotEmpty
            if writes =>
        {
            "; move what is in the way, or name another place"
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            "; name the file that was packed"
        }
        _ => "",
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLocation => f.write_str(
                "this user has no home folder to keep compiled kernels in: set GRAINSTORE_DIR to \
                 a folder of this user's own",
            ),
            Self::Untrusted { path, distrust, layer } => {
                distrust.explain(path, layer.as_deref(), f)
            }
            Self::UseOnly => f.write_str(
                "this store was opened only to be used (`use_only`), so nothing in it can be \
                 changed: open it without that option",
            ),
            Self::Stopped => f.write_str(
                "this was stopped before its end: what was done until then is whole; call it again \
                 for the rest",
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
            Self::Bundle { what, path, error } => {
                let path = path.display();
                let writes = ["create", "write"].contains(what);
                let advice = advice_on_bundle(writes, error);
                write!(f, "could not {what} the bundle {path}: {error}{advice}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The other variants' texts are whole, with nothing below them.
        match self {
            Self::Io { error, .. } | Self::Bundle { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
