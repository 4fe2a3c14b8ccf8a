//! A folder as an open descriptor, and the files in it relative to that.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
};
use rustix::io::Errno;

use super::{Listed, MARK_FOR, distance, way};
use crate::trust::{Distrust, Place, Standing, judge};
use crate::{Error, positioned};

const OPEN_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// `NONBLOCK`: a named pipe in a file's place must not hang the one who opens it.
const OPEN_FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);
/// Read and write: some systems lock only what could be written.
const SHARED_FILE: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);
const CREATE_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A folder that is trusted, open.
///
/// Names are relative to it, and may have one folder before the file: `ab/abcd.grain`. They are
/// made by the store and never by its users.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    handle: OwnedFd,
}

impl Folder {
    /// The folder at this path, made with all above it if it is missing, and the folder `name` in
    /// it, likewise.
    pub(crate) fn open(path: &Path, name: &str) -> Result<Self, Error> {
        let path = way::walk(path, Place::Folder, me())?;
        let above = rustix::fs::openat(CWD, &path, OPEN_FOLDER, Mode::empty())
            .map_err(|errno| Error::io("open", &path)(errno.into()))?;
        let above = Self { path, handle: above };
        above.check_itself()?;

        let path = above.path.join(name);
        // First open, then make: a store on a read-only file system is there already.
        let open = || rustix::fs::openat(&above.handle, name, OPEN_FOLDER, Mode::empty());
        let handle = match open() {
            Err(Errno::NOENT) => {
                above.make_folder(name).map_err(Error::io("create", &path))?;
                open()
            }
            opened => opened,
        };
        let handle = handle.map_err(|errno| above.failed("open", name, errno))?;
        let folder = Self { path, handle };
        folder.check_itself()?;
        Ok(folder)
    }

    /// Where it is, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder `name` in the folder at this path, if it is there. Nothing is made.
    pub(crate) fn open_existing(path: &Path, name: &str) -> Result<Option<Self>, Error> {
        let path = path.join(name);
        match rustix::fs::lstat(&path) {
            Ok(_) => {}
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(Error::io("look at", path)(errno.into())),
        }
        let above = path.parent().unwrap_or(&path);
        Self::open(above, name).map(Some)
    }

    /// The bytes of a file, if there is one and it is trusted. One of more than `limit` bytes is an
    /// error. With `now`, a mark of use that is too far from it is renewed.
    ///
    /// Everything is judged on what is open: this folder and the file by their descriptors. The
    /// folder between them is judged by its name, after the file was opened through it: only those
    /// who are trusted can give that name to another folder, since this one is trusted.
    pub(crate) fn read(
        &self,
        name: &str,
        limit: u64,
        now: Option<SystemTime>,
    ) -> Result<Option<Bytes>, Error> {
        let file = match rustix::fs::openat(&self.handle, name, OPEN_FILE, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::STALE) => return Ok(None),
            Err(errno) => return Err(self.failed("open", name, errno)),
        };
        self.check_itself()?;
        if let Some((between, _)) = name.split_once('/') {
            match rustix::fs::statat(&self.handle, between, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => self.check(between, Place::Folder, &stat)?,
                // Deleted since the file was opened, and the file with it.
                Err(Errno::NOENT | Errno::STALE) => return Ok(None),
                Err(errno) => return Err(self.failed("look at", between, errno)),
            }
        }
        let stat = rustix::fs::fstat(&file).map_err(|errno| self.failed("look at", name, errno))?;
        self.check(name, Place::File, &stat)?;
        let bytes = read_all(&file, stat.st_size as u64, limit)
            .map_err(|error| Error::io("read", self.path.join(name))(error))?;
        let used = modified(&stat);
        if now.is_some_and(|now| distance(now, used) > MARK_FOR) {
            // Where that may not be done, nothing can be pruned either.
            let _ = rustix::fs::futimens(&file, &NOW);
        }
        Ok(Some(bytes))
    }

    /// Marks a file as used just now. Says whether it is there.
    pub(crate) fn mark(&self, name: &str) -> io::Result<bool> {
        match rustix::fs::utimensat(&self.handle, name, &NOW, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::STALE) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A file that is shared and stays, made if it is missing: to read, write and lock.
    pub(crate) fn open_or_create(&self, name: &str) -> io::Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::openat(&self.handle, name, SHARED_FILE, mode)?.into())
    }

    /// Writes over the beginning of a file that is shared and stays.
    pub(crate) fn write_in_place(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        positioned::write(&self.open_or_create(name)?, bytes, 0)
    }

    /// The same, to lengthen it: `NotFound` if it is missing.
    pub(crate) fn open_to_append(&self, name: &str) -> io::Result<File> {
        let flags = SHARED_FILE.difference(OFlags::CREATE).union(OFlags::APPEND);
        Ok(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?.into())
    }

    /// Whether this open file has that name still.
    pub(crate) fn is_named(&self, file: &File, name: &str) -> bool {
        let named = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW);
        match (rustix::fs::fstat(file), named) {
            (Ok(open), Ok(named)) => (open.st_dev, open.st_ino) == (named.st_dev, named.st_ino),
            _ => false,
        }
    }

    /// A file that was not there before, for this user alone.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::openat(&self.handle, name, CREATE_FILE, mode)?.into())
    }

    /// A folder for this user alone. It may be there already.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.handle, name, Mode::RWXU) {
            Err(errno) if errno != Errno::EXIST => Err(errno.into()),
            _ => Ok(()),
        }
    }

    /// Gives a file another name, in one step. What had that name is gone with it.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Gives a file a second name, in one step, unless something has it: `AlreadyExists`. Where the
    /// file system has no second names, it gets that one instead, and only the look before is left
    /// to tell.
    pub(crate) fn link(&self, from: &str, to: &str) -> io::Result<()> {
        match rustix::fs::linkat(&self.handle, from, &self.handle, to, AtFlags::empty()) {
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK | Errno::INVAL) => {
                match rustix::fs::statat(&self.handle, to, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST.into()),
                    Err(Errno::NOENT) => self.rename(from, to),
                    Err(errno) => Err(errno.into()),
                }
            }
            linked => Ok(linked?),
        }
    }

    /// Removes a file. Says whether there was one.
    pub(crate) fn remove(&self, name: &str) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The files in the folder `name`; what vanishes meanwhile is left out.
    pub(crate) fn files(&self, name: &str) -> io::Result<impl Iterator<Item = Listed>> {
        let handle = rustix::fs::openat(&self.handle, name, OPEN_FOLDER, Mode::empty())?;
        let names = Dir::new(handle)?.filter_map(Result::ok);
        Ok(names.filter_map(move |found| {
            let name = format!("{name}/{}", found.file_name().to_str().ok()?);
            let stat =
                rustix::fs::statat(&self.handle, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
            let listed = Listed {
                name,
                used: modified(&stat),
                disk: disk(&stat),
                length: stat.st_size as u64,
            };
            (!is_folder).then_some(listed)
        }))
    }

    fn check_itself(&self) -> Result<(), Error> {
        let stat =
            rustix::fs::fstat(&self.handle).map_err(|errno| self.failed("look at", "", errno))?;
        self.check("", Place::Folder, &stat)
    }

    fn check(&self, name: &str, place: Place, stat: &Stat) -> Result<(), Error> {
        judge(place, Standing::from(stat), me())
            .map_err(|distrust| Error::untrusted(self.path.join(name), distrust))
    }

    fn failed(&self, what: &'static str, name: &str, errno: Errno) -> Error {
        let path = self.path.join(name);
        // Systems disagree about the error for a link that is not followed, so that is looked up.
        let is_link = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink());
        if is_link {
            return Error::untrusted(path, Distrust::Link);
        }
        Error::io(what, path)(errno.into())
    }
}

/// A file outside the store that is trusted as one of the store's would be, open to be read. The
/// folder that it is in may be a shared one, if it is sticky.
pub(crate) fn open_trusted(path: &Path) -> Result<File, Error> {
    // Asked first, since the walk would make folders that are missing.
    let about = std::fs::metadata(path).map_err(Error::bundle("open", path))?;
    let name = path.file_name().filter(|_| !about.is_dir());
    let name = name.ok_or_else(|| Error::bundle("open", path)(Errno::ISDIR.into()))?;
    let above = way::walk(path.parent().unwrap_or(path), Place::Above, me())?;
    let handle = rustix::fs::openat(CWD, &above, OPEN_FOLDER, Mode::empty())
        .map_err(|errno| Error::io("open", &above)(errno.into()))?;
    let folder = Folder { path: above, handle };
    let failed = |errno: Errno| Error::bundle("open", path)(errno.into());
    let file = match rustix::fs::openat(&folder.handle, name, OPEN_FILE, Mode::empty()) {
        Err(Errno::LOOP) => {
            let what = "it is a symbolic link: name the file that it leads to";
            return Err(Error::bundle("open", path)(io::Error::other(what)));
        }
        opened => opened.map_err(failed)?,
    };
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    folder.check(&name.to_string_lossy(), Place::File, &stat)?;
    Ok(file.into())
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Sets the time of the last change to this moment, by the file system's own clock.
const NOW: Timestamps = Timestamps {
    last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
};

#[allow(clippy::unnecessary_cast, reason = "the fields' types differ among systems")]
fn modified(stat: &Stat) -> SystemTime {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
    let nanos = u32::try_from(stat.st_mtime_nsec as i64).unwrap_or_default();
    SystemTime::UNIX_EPOCH + std::time::Duration::new(seconds, nanos)
}

/// In units of 512 bytes on every system, whatever its blocks are.
#[allow(clippy::unnecessary_cast, reason = "the field's type differs among systems")]
fn disk(stat: &Stat) -> u64 {
    (stat.st_blocks as u64).saturating_mul(512)
}

/// Reads a file into one buffer of just its size: no byte is copied or cleared before.
///
/// A file that has grown is cut at its old size, one that has shrunk ends early; both fail the
/// digest. (Artifacts are replaced and never changed, so somebody else would have done it.)
fn read_all(file: &OwnedFd, size: u64, limit: u64) -> io::Result<Bytes> {
    let size = usize::try_from(size).ok().filter(|_| size <= limit);
    let size = size.ok_or(io::ErrorKind::FileTooLarge)?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    while buffer.len() < size {
        match rustix::io::read(file, spare_capacity(&mut buffer)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    buffer.truncate(size);
    Ok(buffer.into())
}
