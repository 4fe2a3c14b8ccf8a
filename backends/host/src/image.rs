//! Puts the bytes of a shared object where the system's loader can open them by a path.
//!
//! The path must be new each time. Loaders take a name that they have seen for the library that
//! they have loaded, and two modules of equal bytes must not share their variables.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::artifact::OBJECT;
use crate::scratch::Scratch;

/// A shared object that can be opened by its path until this is dropped.
#[derive(Debug)]
pub(crate) struct Image {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// In memory, behind an open file; nothing is ever on disk.
    #[cfg(target_os = "linux")]
    Memory(#[expect(dead_code, reason = "held for its descriptor, which the path names")] File),
    /// In a private folder, which goes when this is dropped.
    Folder(Scratch),
}

impl Image {
    /// Makes these bytes openable; a file goes into a new private folder in `scratch`.
    pub(crate) fn new(bytes: &[u8], scratch: Option<&Path>) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        // Where the system forbids it, a file will do.
        if let Ok(image) = Self::in_memory(bytes) {
            return Ok(image);
        }
        Self::in_folder(bytes, scratch)
    }

    /// The path to open.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What must be kept while the library is loaded. Where a file that is in use cannot be
    /// removed, that is its folder; elsewhere nothing.
    pub(crate) fn into_keep(self) -> Option<Scratch> {
        match self.place {
            Place::Folder(folder) if cfg!(windows) => Some(folder),
            _ => None,
        }
    }

    #[cfg(target_os = "linux")]
    fn in_memory(bytes: &[u8]) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        use std::sync::atomic::{AtomicU64, Ordering};

        use rustix::fs::{MemfdFlags, memfd_create};

        static LOADS: AtomicU64 = AtomicU64::new(0);

        let mut file = File::from(memfd_create("grainstore-kernel", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes)?;
        let count = LOADS.fetch_add(1, Ordering::Relaxed);
        let path = numbered_path(count, file.as_raw_fd());
        // Not so where `/proc` is not mounted.
        path.metadata()?;
        Ok(Self { path, place: Place::Memory(file) })
    }

    fn in_folder(bytes: &[u8], scratch: Option<&Path>) -> io::Result<Self> {
        let folder = Scratch::new(scratch)?;
        let path = folder.path().join(OBJECT);
        File::create_new(&path)?.write_all(bytes)?;
        Ok(Self { path, place: Place::Folder(folder) })
    }
}

/// A path to the descriptor that no other `count` gives, though descriptors are used again.
///
/// The system takes `/./` for `/`, the loader compares names letter by letter: so the count is
/// spelt in the slashes, a bit each.
#[cfg(target_os = "linux")]
fn numbered_path(count: u64, descriptor: i32) -> PathBuf {
    let mut path = String::from("/proc/self");
    for bit in 0..u64::BITS - count.leading_zeros() {
        path.push_str(if count >> bit & 1 == 1 { "/." } else { "/" });
    }
    path.push_str(&format!("/fd/{descriptor}"));
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn no_two_counts_give_the_same_path() {
        // As the loader compares them: `Path` would leave out what makes them differ.
        let spelt = |count| numbered_path(count, 5).into_os_string();
        let paths: std::collections::HashSet<_> = (0..4096).map(spelt).collect();
        assert_eq!(paths.len(), 4096);
        let longest = numbered_path(u64::MAX, i32::MAX);
        assert!(longest.as_os_str().len() < 255, "{}", longest.display());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_reads_back_by_its_path() {
        let image = Image::in_memory(b"bytes").unwrap();
        assert_eq!(std::fs::read(image.path()).unwrap(), b"bytes");
    }

    #[test]
    fn a_folder_is_gone_with_its_image() {
        let image = Image::in_folder(b"bytes", None).unwrap();
        let path = image.path().to_owned();
        assert_eq!(std::fs::read(&path).unwrap(), b"bytes");
        drop(image);
        assert!(!path.parent().unwrap().exists());
    }
}
