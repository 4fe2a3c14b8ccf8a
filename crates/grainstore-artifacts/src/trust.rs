//! Whether code may be loaded from a place: nobody but this user and root could have changed it.
//!
//! The rule is one pure function over owner and mode ([`judge`]); what differs is the place. Write
//! access that an access control list gives to others shows in the group's bits of the mode, so it
//! is seen as well. Windows has no such modes: there the folder below the user's own application
//! data is private by inheritance, and nothing more is checked.

use std::fmt;
use std::path::Path;

#[cfg(unix)]
use rustix::fs::{FileType, Mode, Stat};

/// Why a file or folder is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Distrust {
    /// It belongs to somebody else.
    Owner {
        /// To whom.
        owner: u32,
        /// Who this process is.
        user: u32,
    },
    /// Others may write to it.
    Writable {
        /// Its permission bits.
        mode: u32,
    },
    /// It is a symbolic link, where the store never makes one.
    Link,
    /// It is neither a file nor a folder, or one where the other should be.
    Kind,
    /// A chain of links that leads to the folder has no end.
    LinkLoop,
}

impl Distrust {
    /// In words, with what to do: a store can lie elsewhere, while what lies below one, a `layer`, is
    /// named by whoever opens it.
    pub(crate) fn explain(
        self,
        path: &Path,
        layer: Option<&Path>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let (place, own, private) = match layer {
            None => (
                "here".into(),
                "set GRAINSTORE_DIR to a folder of this user's own",
                "set GRAINSTORE_DIR to a private folder",
            ),
            Some(layer) => (
                layer.display().to_string(),
                "name a copy in a folder of this user's own",
                "name a copy in a private folder",
            ),
        };
        // What was named may be anybody's, and of use: a device, say.
        let is_named = layer == Some(path);
        let path = path.display();
        write!(f, "compiled kernels are not loaded from {place}, since {path} ")?;
        match self {
            Self::Owner { owner, user } => write!(
                f,
                "belongs to user {owner}, neither to this user ({user}) nor to root: `chown` it, or {own}"
            ),
            Self::Writable { mode } => write!(
                f,
                "may be written by others (mode {mode:04o}): run `chmod go-w {path}`, or {private}"
            ),
            Self::Link => f.write_str("is a symbolic link: remove it"),
            Self::Kind if is_named => f.write_str(
                "is something else than it should be: name the file of a bundle, or the folder of \
                 a store",
            ),
            Self::Kind => f.write_str("is something else than it should be: remove it"),
            Self::LinkLoop => f.write_str("is behind too many symbolic links: untangle them"),
        }
    }
}

/// What a place is to the store.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An artifact's file.
    File,
    /// The store's own folder, or one in it.
    Folder,
    /// A folder above the store's. A sticky one may be open to all: they can't touch what is not
    /// theirs.
    Above,
    /// A symbolic link above the store's folder. Its mode says nothing; who owns it chose it.
    LinkAbove,
}

/// What a place is, whose, and who may write to it.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) kind: FileType,
    pub(crate) owner: u32,
    pub(crate) mode: Mode,
}

#[cfg(unix)]
impl From<&Stat> for Standing {
    fn from(stat: &Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            owner: stat.st_uid,
            mode: Mode::from_raw_mode(stat.st_mode),
        }
    }
}

/// The rule.
#[cfg(unix)]
pub(crate) fn judge(place: Place, standing: Standing, user: u32) -> Result<(), Distrust> {
    let Standing { kind, owner, mode } = standing;
    match (place, kind) {
        (Place::LinkAbove, FileType::Symlink)
        | (Place::File, FileType::RegularFile)
        | (Place::Folder | Place::Above, FileType::Directory) => {}
        (_, FileType::Symlink) => return Err(Distrust::Link),
        _ => return Err(Distrust::Kind),
    }
    if owner != user && owner != 0 {
        return Err(Distrust::Owner { owner, user });
    }
    let shared = match place {
        Place::LinkAbove => true,
        Place::Above => mode.contains(Mode::SVTX),
        Place::File | Place::Folder => false,
    };
    if mode.intersects(Mode::WGRP | Mode::WOTH) && !shared {
        #[allow(clippy::unnecessary_cast, reason = "a mode has 16 bits on macOS")]
        let mode = mode.as_raw_mode() as u32;
        return Err(Distrust::Writable { mode });
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const ME: u32 = 1000;

    fn standing(kind: FileType, owner: u32, mode: u32) -> Standing {
        Standing { kind, owner, mode: Mode::from_bits_retain(mode as rustix::fs::RawMode) }
    }

    #[test]
    fn a6_the_whole_matrix() {
        use FileType::{Directory, Fifo, RegularFile, Symlink};
        for place in [Place::File, Place::Folder, Place::Above] {
            let (kind, wrong) = match place {
                Place::File => (RegularFile, Directory),
                _ => (Directory, RegularFile),
            };
            for owner in [0, ME, 1001, 65534] {
                for mode in 0..0o10000 {
                    let mine = owner == 0 || owner == ME;
                    let private = mode & 0o022 == 0;
                    let sticky = place == Place::Above && mode & 0o1000 != 0;
                    let verdict = judge(place, standing(kind, owner, mode), ME);
                    let trusted = mine && (private || sticky);
                    assert_eq!(verdict.is_ok(), trusted, "{place:?} {owner} {mode:o}: {verdict:?}");
                }
            }
            for wrong in [wrong, Fifo] {
                assert_eq!(judge(place, standing(wrong, ME, 0o700), ME), Err(Distrust::Kind));
            }
            assert_eq!(judge(place, standing(Symlink, ME, 0o777), ME), Err(Distrust::Link));
        }
    }

    #[test]
    fn a6_a_link_above_is_as_good_as_its_owner() {
        let link = |owner| judge(Place::LinkAbove, standing(FileType::Symlink, owner, 0o777), ME);
        assert_eq!(link(ME), Ok(()));
        assert_eq!(link(0), Ok(()));
        assert_eq!(link(1001), Err(Distrust::Owner { owner: 1001, user: ME }));
    }

    #[test]
    fn a6_root_trusts_root_alone() {
        assert_eq!(judge(Place::File, standing(FileType::RegularFile, 0, 0o644), 0), Ok(()));
        assert!(judge(Place::File, standing(FileType::RegularFile, ME, 0o600), 0).is_err());
    }
}
