//! Private folders for the compiler's files, and those that killed processes left behind.
//!
//! A folder is locked by the process that works in it, and the system drops the lock when that dies.
//! So whoever makes the first folder in some place removes the ones there that nobody holds: one more
//! look at the place's names, once a process. Where folders can't be locked, nothing is removed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// What their names begin with, and how many random letters follow.
const PREFIX: &str = "grainstore-compile-";
const RANDOM: usize = 12;

/// A folder that nobody else can enter, with a name of its own, gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    /// Held after the folder is gone: fields are dropped in their order.
    _lock: Option<File>,
}

impl Scratch {
    /// A new one in this place, or in the system's for temporary files.
    pub(crate) fn new(place: Option<&Path>) -> io::Result<Self> {
        let place = place.map_or_else(std::env::temp_dir, Path::to_owned);
        system::sweep_once(&place);
        loop {
            let mut builder = tempfile::Builder::new();
            builder.prefix(PREFIX).rand_bytes(RANDOM);
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
            let folder = builder.tempdir_in(&place)?;
            match system::lock(folder.path()) {
                Ok(Some(lock)) => return Ok(Self { folder, _lock: Some(lock) }),
                // Another process took it for a dead one's, in the moment before it was locked.
                Ok(None) => {}
                Err(_) => return Ok(Self { folder, _lock: None }),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

#[cfg(unix)]
mod system {
    use std::collections::HashSet;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::sync::{LazyLock, Mutex, PoisonError};

    use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
    use rustix::io::Errno;
    use rustix::process::geteuid;

    use super::*;

    /// Locks a folder. None if another process has it, or has removed it.
    pub(super) fn lock(folder: &Path) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(CWD, folder, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(folder.exists().then_some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes what dead processes left in this place, the first time that it is asked.
    pub(super) fn sweep_once(place: &Path) {
        static SWEPT: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);
        let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.insert(place.to_owned()) {
            drop(swept);
            sweep(place);
        }
    }

    /// What can't be removed is left to the next process.
    pub(super) fn sweep(place: &Path) {
        let Ok(found) = std::fs::read_dir(place) else { return };
        for found in found.flatten() {
            let name = found.file_name();
            let is_named =
                name.to_str().and_then(|name| name.strip_prefix(PREFIX)).is_some_and(|end| {
                    end.len() == RANDOM && end.bytes().all(|byte| byte.is_ascii_alphanumeric())
                });
            // Of this user, and as we make them: not somebody's own folder of such a name.
            let is_ours = || {
                found.metadata().is_ok_and(|about| {
                    about.is_dir()
                        && about.uid() == geteuid().as_raw()
                        && about.permissions().mode() & 0o777 == 0o700
                })
            };
            if is_named
                && is_ours()
                && let Ok(Some(_lock)) = lock(&found.path())
            {
                let _ = std::fs::remove_dir_all(found.path());
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use super::*;

    pub(super) fn lock(_: &Path) -> io::Result<Option<File>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn sweep_once(_: &Path) {}
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_nobody_holds_is_swept_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let live = Scratch::new(Some(place.path())).unwrap();
        let dead = Scratch::new(Some(place.path())).unwrap();
        fs::write(dead.path().join("ccOu8QFL.o"), "half of it").unwrap();
        // As a process leaves it that is killed: unlocked, and there.
        let Scratch { folder, _lock } = dead;
        let dead = folder.keep();
        drop(_lock);
        let theirs = ["grainstore-compile-notes", "grainstore-compile-of-the-moon", "else"]
            .map(|name| place.path().join(name));
        for folder in &theirs {
            fs::create_dir(folder).unwrap();
        }
        system::sweep(place.path());
        assert!(!dead.exists());
        assert!(live.path().exists() && theirs.iter().all(|folder| folder.exists()));
        let path = live.path().to_owned();
        drop(live);
        assert!(!path.exists());
    }
}
