//! A folder as a path, where there are no calls relative to an open one.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;

use crate::Error;

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

    /// The bytes of a file, if there is one. One of more than `limit` bytes is an error.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<Option<Bytes>, Error> {
        let path = self.path.join(name);
        match read_all(&path, limit) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", path)(error)),
        }
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

    /// Removes a file. Says whether there was one.
    pub(crate) fn remove(&self, name: &str) -> io::Result<bool> {
        match std::fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    /// The files in the folder `name`, as names relative to this one, with the time of their last
    /// change.
    pub(crate) fn files(
        &self,
        name: &str,
    ) -> io::Result<impl Iterator<Item = (String, SystemTime)>> {
        let found = std::fs::read_dir(self.path.join(name))?.filter_map(Result::ok);
        Ok(found.filter_map(move |found| {
            let about = found.metadata().ok().filter(|about| !about.is_dir())?;
            let file = found.file_name().into_string().ok()?;
            Some((format!("{name}/{file}"), about.modified().ok()?))
        }))
    }
}

fn read_all(path: &Path, limit: u64) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut buffer = Vec::new();
    file.read_to_end(&mut buffer)?;
    Ok(buffer.into())
}
