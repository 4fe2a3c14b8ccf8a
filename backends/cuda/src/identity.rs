//! Which build of a library this is, without reading all of its hundred megabytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use grainstore_runtime::parts::digest;

/// The headers of a library's file are here, with whatever its linker put there to tell builds
/// apart: an ELF file's build identifier, a Windows library's time and checksum.
const HEADERS: u64 = 4096;

/// A digest of the headers and the length: the same on every machine that has the same file. None
/// where it can't be read.
pub(crate) fn of(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut known = length.to_le_bytes().to_vec();
    file.take(HEADERS).read_to_end(&mut known).ok()?;
    Some(digest(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_length_tell_builds_apart() {
        let folder = tempfile::tempdir().unwrap();
        let identity = |bytes: &[u8]| {
            let path = folder.path().join("lib.so");
            std::fs::write(&path, bytes).unwrap();
            of(&path).unwrap()
        };
        assert_eq!(identity(b"one"), identity(b"one"));
        assert_ne!(identity(b"one"), identity(b"two"));
        assert_ne!(identity(&[0; 5000]), identity(&[0; 5001]));
        assert_eq!(identity(b"").len(), 16);
        assert_eq!(of(&folder.path().join("none")), None);
    }
}
