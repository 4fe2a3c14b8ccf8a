//! An artifact's members as files in a folder of the caller's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::temporary::unique;
use super::{ArtifactStore, Error};
use crate::key::EntryKey;
use crate::{Group, Member};

impl ArtifactStore {
    /// Writes the members of this key's group as files into `folder`: for compilers that want their
    /// results there. Gives their paths in the order of the members, or `None` if there is no such
    /// group.
    ///
    /// A folder that is missing or empty appears with all of them in one step. In one that has files
    /// already, each member appears in one step, the first one last: who sees the binary sees the
    /// others. The files get the usual permissions of this user's new files.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Error::Io`] if the files can't be written.
    pub fn materialize(
        &self,
        key: &impl EntryKey,
        folder: impl AsRef<Path>,
    ) -> Result<Option<Vec<PathBuf>>, Error> {
        let Some(group) = self.get(key)? else { return Ok(None) };
        let folder = folder.as_ref();
        let folder = std::path::absolute(folder).map_err(Error::io("find", folder))?;
        write(&group, &folder).map_err(Error::io("write members to", &folder))?;
        Ok(Some(group.members().iter().map(|member| folder.join(&member.name)).collect()))
    }
}

fn write(group: &Group, folder: &Path) -> io::Result<()> {
    let is_vacant = match fs::read_dir(folder) {
        Ok(mut inside) => inside.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(error),
    };
    if is_vacant && as_one(group, folder)? {
        return Ok(());
    }
    group.members().iter().rev().try_for_each(|member| one(member, folder))
}

/// A new folder, filled, takes the place of this one. Says whether that was still vacant.
fn as_one(group: &Group, folder: &Path) -> io::Result<bool> {
    let Some(above) = folder.parent() else { return Ok(false) };
    fs::create_dir_all(above)?;
    let filled = above.join(format!(".{}", unique()));
    fs::create_dir(&filled)?;
    let renamed = group
        .members()
        .iter()
        .try_for_each(|member| fs::write(filled.join(&member.name), &member.bytes))
        .map(|()| fs::rename(&filled, folder));
    match renamed {
        Ok(Ok(())) => Ok(true),
        // Somebody filled it meanwhile, or this system replaces no folders.
        Ok(Err(_)) if folder.is_dir() => fs::remove_dir_all(&filled).map(|()| false),
        Ok(Err(error)) | Err(error) => {
            let _ = fs::remove_dir_all(&filled);
            Err(error)
        }
    }
}

fn one(member: &Member, folder: &Path) -> io::Result<()> {
    let unfinished = folder.join(format!(".{}", unique()));
    let written = fs::write(&unfinished, &member.bytes)
        .and_then(|()| fs::rename(&unfinished, folder.join(&member.name)));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}
