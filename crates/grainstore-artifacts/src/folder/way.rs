//! The way to the store's folder, walked from the root and checked at every step.
//!
//! Why names are enough here, although what is loaded is checked on open files: a step is taken
//! only from a folder in which nobody but this user and root can change entries that are not their
//! own. So what a name means cannot change between this walk and the opening of the last folder, but
//! by the doing of those who are trusted. Missing folders are made, private, on the way.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::Error;
use crate::trust::{Distrust, Place, Standing, judge};

/// As many links as Linux itself follows.
const MAX_LINKS: u32 = 40;

/// Walks to `folder`, and gives its path without links. `user` is whom to trust beside root,
/// `last` is what the folder itself is.
pub(crate) fn walk(folder: &Path, last: Place, user: u32) -> Result<PathBuf, Error> {
    let folder = std::path::absolute(folder).map_err(Error::io("find", folder))?;
    let mut here = PathBuf::from("/");
    let mut ahead = steps(&folder);
    let mut links = 0;
    check(&here, Place::Above, &look(&here)?, user)?;
    while let Some(step) = ahead.pop() {
        if step == ".." {
            // `here` has no links in it, so its parent is the parent.
            here.pop();
            continue;
        }
        let next = here.join(step);
        let found = match rustix::fs::lstat(&next) {
            Err(Errno::NOENT) => {
                make(&next)?;
                look(&next)?
            }
            found => found.map_err(|errno| Error::io("look at", &next)(errno.into()))?,
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                check(&next, Place::LinkAbove, &found, user)?;
                links += 1;
                if links > MAX_LINKS {
                    return Err(Error::untrusted(next, Distrust::LinkLoop));
                }
                let target = std::fs::read_link(&next).map_err(Error::io("follow", &next))?;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                ahead.extend(steps(&target));
            }
            FileType::Directory => {
                // With no step ahead this is the folder itself. (A path that ends in `..` gets
                // there without passing here: whoever opens the folder judges it once more.)
                let place = if ahead.is_empty() { last } else { Place::Above };
                check(&next, place, &found, user)?;
                here = next;
            }
            // A file in the way is no question of trust.
            _ => return Err(Error::io("use", &next)(io::ErrorKind::NotADirectory.into())),
        }
    }
    Ok(here)
}

/// The names of a path, the first one last: a stack of steps to take.
fn steps(path: &Path) -> Vec<OsString> {
    let named = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(named).collect()
}

fn make(folder: &Path) -> Result<(), Error> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        // Somebody was faster. Whoever it was, the check that follows looks at what is there now.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(Error::io("create", folder)),
    }
}

fn look(path: &Path) -> Result<Stat, Error> {
    rustix::fs::lstat(path).map_err(|errno| Error::io("look at", path)(errno.into()))
}

fn check(path: &Path, place: Place, found: &Stat, user: u32) -> Result<(), Error> {
    judge(place, Standing::from(found), user).map_err(|distrust| Error::untrusted(path, distrust))
}
