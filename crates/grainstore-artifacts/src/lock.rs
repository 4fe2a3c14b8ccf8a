//! Locks between processes, which the operating system drops when their holder dies.
//!
//! On Linux one file, `locks`, is locked byte by byte: each key has a byte of its own among 2^63, so
//! nobody waits for another key's lock, and a build that asks for a second kernel can't meet its own
//! lock. The locks belong to the open file and not to the process, so they hold among threads too.
//! On other systems there are 4,096 files, each locked as a whole, and a key shares its file with few.
//! On Windows nobody else can even read a file that is locked, so there nobody sees how old a lock is.
//!
//! The files are never removed. A file system without locks is survived: see [`Attempt::Unknown`].

use std::fs::File;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use grainstore::Fingerprint;

use crate::folder::Folder;
use crate::positioned;

/// Pauses between two attempts: the first, and the longest. A compile takes some ten milliseconds
/// or more, so the last pause costs little of what it waited for.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(8);

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

impl Place {
    /// Only one process prunes at a time.
    pub(crate) const PRUNE: Self = Self(0);
    /// The figures over all processes.
    pub(crate) const FIGURES: Self = Self(1);

    /// The place of a key: 63 bits of its fingerprint, so that no two keys share one.
    pub(crate) fn of(fingerprint: &Fingerprint) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *fingerprint.as_bytes();
        let bits = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
        // Offsets are signed, a byte range must not end beyond the last, and the first few are
        // taken.
        Self(bits.clamp(16, i64::MAX as u64 - 1))
    }

    /// Where in the file of locks it is noted since when this place is held.
    fn note(self) -> u64 {
        (self.0 >> 51) * 8
    }
}

/// A lock that is held. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    place: Place,
    process: u32,
}

impl Lock {
    /// Whether this process has it, and not the parent that it was forked from.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Notes for others since when it is held. Two places may share where that is noted, so it may
    /// seem younger than it is.
    pub(crate) fn note(&self, time: SystemTime) {
        let millis = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        let millis = u64::try_from(millis).unwrap_or_default().to_le_bytes();
        // Without a note it is waited for as long as those who wait are willing to.
        let _ = positioned::write(&self.file, &millis, self.place.note());
    }

    /// Takes the note away: whoever gets the lock next sees that it was released and not lost.
    pub(crate) fn unnote(&self) {
        let _ = positioned::write(&self.file, &[0; 8], self.place.note());
    }

    /// Whether the one who held it before died with it.
    pub(crate) fn was_lost(&self) -> bool {
        noted(&self.file, self.place).is_some()
    }
}

/// Since when whoever holds this place does so, if that was noted.
pub(crate) fn noted(file: &File, place: Place) -> Option<SystemTime> {
    let mut millis = [0; 8];
    positioned::read(file, &mut millis, place.note()).ok()?;
    match u64::from_le_bytes(millis) {
        0 => None,
        millis => SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis)),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A forked child shares the open file, and with it the lock: it is the parent's to release.
        // The parent says so in words, since closing alone would leave it to the child's end.
        if self.is_ours() {
            let _ = system::unlock(&self.file, self.place);
        }
    }
}

/// What came of trying to lock.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// It is ours.
    Held(Lock),
    /// Somebody else has it; with the file of locks, to read what they noted.
    Taken(File),
    /// There are no locks here: a file system without them, or one that can't be written.
    Unknown,
}

/// Tries to lock, without waiting.
pub(crate) fn attempt(folder: &Folder, place: Place) -> Attempt {
    let Ok(file) = system::open(folder, place) else { return Attempt::Unknown };
    match system::try_lock(&file, place) {
        Ok(true) => Attempt::Held(Lock { file, place, process: std::process::id() }),
        Ok(false) => Attempt::Taken(file),
        Err(_) => Attempt::Unknown,
    }
}

/// Locks a file that is used for nothing else, until it is closed everywhere. Says whether it could.
pub(crate) fn whole(file: &File) -> io::Result<bool> {
    system::try_lock(file, Place(0))
}

/// What came of waiting for a lock.
#[derive(Debug)]
pub(crate) enum Waited {
    /// It is ours, and was at once or only after somebody released it.
    Held {
        /// The lock.
        lock: Lock,
        /// Whether somebody else had it first.
        waited: bool,
    },
    /// It is not: the time is over, or whoever has it is given up on.
    TooLong,
    /// There are no locks here.
    NoLocks,
}

/// Tries to lock until `bound` is over, or `give_up` says of the file of locks that waiting is no
/// use.
///
/// It asks again and again: the systems have no lock that waits for a bounded time, and a thread or
/// a signal of its own is not a library's to use.
pub(crate) fn wait(
    folder: &Folder,
    place: Place,
    bound: Duration,
    give_up: impl Fn(&File) -> bool,
) -> Waited {
    let mut file = match attempt(folder, place) {
        Attempt::Held(lock) => return Waited::Held { lock, waited: false },
        Attempt::Unknown => return Waited::NoLocks,
        Attempt::Taken(file) => file,
    };
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let left = bound.saturating_sub(begin.elapsed());
        if left.is_zero() || give_up(&file) {
            return Waited::TooLong;
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        match system::try_lock(&file, place) {
            Ok(true) => {
                let lock = Lock { file, place, process: std::process::id() };
                return Waited::Held { lock, waited: true };
            }
            Ok(false) => {}
            Err(_) => return Waited::NoLocks,
        }
        // The folder may have been deleted and made anew: then the lock of others is in a new file.
        if !system::is_current(folder, &file, place) {
            match attempt(folder, place) {
                Attempt::Held(lock) => return Waited::Held { lock, waited: true },
                Attempt::Unknown => return Waited::NoLocks,
                Attempt::Taken(new) => file = new,
            }
        }
    }
}

/// Open file description locks on ranges of one file.
#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    const NAME: &str = "locks";

    pub(super) fn open(folder: &Folder, _: Place) -> io::Result<File> {
        folder.open_or_create(NAME)
    }

    pub(super) fn is_current(folder: &Folder, file: &File, _: Place) -> bool {
        folder.is_named(file, NAME)
    }

    pub(super) fn try_lock(file: &File, place: Place) -> io::Result<bool> {
        match set(file, place, libc::F_WRLCK) {
            Ok(()) => Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    pub(super) fn unlock(file: &File, place: Place) -> io::Result<()> {
        Ok(set(file, place, libc::F_UNLCK)?)
    }

    fn set(file: &File, place: Place, kind: libc::c_int) -> Result<(), Errno> {
        let range = libc::flock {
            l_type: kind as _,
            l_whence: libc::SEEK_SET as _,
            l_start: place.0 as _,
            l_len: 1,
            l_pid: 0,
        };
        fcntl(file, FcntlArg::F_OFD_SETLK(&range)).map(drop)
    }
}

/// Whole files, one for each of 4,096 parts of the places.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::*;

    const FOLDER: &str = "lock";

    fn name(place: Place) -> String {
        // The highest bits of a key's place; the few fixed ones have files of their own.
        let part = if place.0 < 16 { place.0 } else { 16 + (place.0 >> 51) };
        format!("{FOLDER}/{part:04x}")
    }

    pub(super) fn open(folder: &Folder, place: Place) -> io::Result<File> {
        let name = name(place);
        match folder.open_or_create(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                folder.make_folder(FOLDER)?;
                folder.open_or_create(&name)
            }
            opened => opened,
        }
    }

    pub(super) fn is_current(folder: &Folder, file: &File, place: Place) -> bool {
        folder.is_named(file, &name(place))
    }

    #[cfg(unix)]
    pub(super) fn try_lock(file: &File, _: Place) -> io::Result<bool> {
        use rustix::fs::{FlockOperation, flock};
        use rustix::io::Errno;

        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    #[cfg(unix)]
    pub(super) fn unlock(file: &File, _: Place) -> io::Result<()> {
        use rustix::fs::{FlockOperation, flock};

        Ok(flock(file, FlockOperation::Unlock)?)
    }

    #[cfg(windows)]
    pub(super) fn try_lock(file: &File, _: Place) -> io::Result<bool> {
        match fs4::FileExt::try_lock(file) {
            Ok(()) => Ok(true),
            Err(fs4::TryLockError::WouldBlock) => Ok(false),
            Err(fs4::TryLockError::Error(error)) => Err(error),
        }
    }

    #[cfg(windows)]
    pub(super) fn unlock(file: &File, _: Place) -> io::Result<()> {
        fs4::FileExt::unlock(file)
    }
}
