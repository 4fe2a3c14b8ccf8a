//! A folder as a path, where there are no calls relative to an open one.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;

use super::{Listed, MARK_FOR, distance};
use crate::{Error, positioned};

/// A folder that exists. Names are relative to it, as on Unix.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder `name` in the folder at this path, made with all above it if it is missing.
    pub(crate) fn open(path: &Path, name: &str) -> Result<Self, Error> {
        let path = std::path::absolute(path).map_err(Error::io("find", path))?.join(name);
        std::fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        Ok(Self { path })
    }

    /// Where it is, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder `name` in the folder at this path, if it is there. Nothing is made.
    pub(crate) fn open_existing(path: &Path, name: &str) -> Result<Option<Self>, Error> {
        let above = std::path::absolute(path).map_err(Error::io("find", path))?;
        if above.is_file() {
            return Err(Error::io("look at", above)(io::ErrorKind::NotADirectory.into()));
        }
        let path = above.join(name);
        Ok(path.is_dir().then_some(Self { path }))
    }

    /// The bytes of a file, if there is one. One of more than `limit` bytes is an error. With `now`,
    /// a mark of use that is too far from it is renewed.
    pub(crate) fn read(
        &self,
        name: &str,
        limit: u64,
        now: Option<SystemTime>,
    ) -> Result<Option<Bytes>, Error> {
        let path = self.path.join(name);
        match read_all(&path, limit) {
            Ok((bytes, used)) => {
                if now.is_some_and(|now| distance(now, used) > MARK_FOR) {
                    // Where that may not be done, nothing can be pruned either.
                    let _ = self.mark(name);
                }
                Ok(Some(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", path)(error)),
        }
    }

    /// Marks a file as used just now. Says whether it is there.
    pub(crate) fn mark(&self, name: &str) -> io::Result<bool> {
        let file = match File::options().write(true).open(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        file.set_modified(SystemTime::now())?;
        Ok(true)
    }

    /// A file that is shared and stays, made if it is missing: to read, write and lock.
    pub(crate) fn open_or_create(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        File::options().read(true).write(true).create(true).truncate(false).open(path)
    }

    /// Writes over the beginning of a file that is shared and stays.
    pub(crate) fn write_in_place(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        positioned::write(&self.open_or_create(name)?, bytes, 0)
    }

    /// The same, to lengthen it: `NotFound` if it is missing.
    pub(crate) fn open_to_append(&self, name: &str) -> io::Result<File> {
        File::options().read(true).append(true).open(self.path.join(name))
    }

    /// Whether this open file has that name still, as far as that can be told: a name that is gone
    /// is no file's.
    pub(crate) fn is_named(&self, _: &File, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// A file that was not there before.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        File::create_new(self.path.join(name))
    }

    /// A folder. It may be there already.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<()> {
        match std::fs::create_dir(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// Gives a file another name, in one step. What had that name is gone with it.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    /// Gives a file a second name, in one step, unless something has it: `AlreadyExists`.
    pub(crate) fn link(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::hard_link(self.path.join(from), self.path.join(to))
    }

    /// Removes a file. Says whether there was one.
    pub(crate) fn remove(&self, name: &str) -> io::Result<bool> {
        match std::fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    /// The files in the folder `name`; what vanishes meanwhile is left out.
    pub(crate) fn files(&self, name: &str) -> io::Result<impl Iterator<Item = Listed>> {
        let found = std::fs::read_dir(self.path.join(name))?.filter_map(Result::ok);
        Ok(found.filter_map(move |found| {
            let about = found.metadata().ok().filter(|about| !about.is_dir())?;
            let file = found.file_name().into_string().ok()?;
            let used = about.modified().ok()?;
            Some(Listed {
                name: format!("{name}/{file}"),
                used,
                disk: disk(&about),
                length: about.len(),
            })
        }))
    }
}

/// A bundle, open to be read.
pub(crate) fn open_trusted(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(Error::bundle("open", path))
}

/// What a file takes at least, in clusters of the usual size.
fn disk(about: &Metadata) -> u64 {
    about.len().next_multiple_of(4096)
}

fn read_all(path: &Path, limit: u64) -> io::Result<(Bytes, SystemTime)> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    if about.len() > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut buffer = Vec::new();
    file.read_to_end(&mut buffer)?;
    Ok((buffer.into(), about.modified()?))
}
