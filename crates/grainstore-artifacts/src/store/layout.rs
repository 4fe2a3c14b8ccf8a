//! What lies where in the store's folder.
//!
//! ```text
//! <folder>/v1/                      the format's version, also inside a custom folder
//!             ab/abcd….grain        an artifact: all 64 hex digits of its key's fingerprint
//!             tmp/                  what is being written
//!             locks                 locked byte by byte, never read as a whole
//!             use                   its length says what the artifacts take on disk
//!             figures               what all processes counted
//!             loading/              a journal for each process that loads
//!             crashed/              artifacts whose loading ended a process
//! ```
//!
//! 256 folders keep each of them short where a store holds a hundred thousand artifacts.

use grainstore::Fingerprint;

/// The folder of this version of the format: other versions keep out of each other's way.
pub(crate) const VERSION_FOLDER: &str = "v1";
/// The folder of unfinished files. On the same file system as the rest, so that renaming works; a
/// single one, so that sweeping it scans nothing else.
pub(crate) const TEMPORARY_FOLDER: &str = "tmp";

/// The name of an artifact's file, relative to the version's folder.
pub(crate) fn file_name(fingerprint: &Fingerprint) -> String {
    format!("{:02x}/{fingerprint}.grain", fingerprint.as_bytes()[0])
}

/// The fingerprint that a file of this name should have; none if the name is no artifact's.
pub(crate) fn fingerprint(file_name: &str) -> Option<Fingerprint> {
    let name = file_name.rsplit('/').next()?.strip_suffix(".grain")?;
    let fingerprint = name.parse().ok()?;
    (self::file_name(&fingerprint) == file_name).then_some(fingerprint)
}

/// The folders that hold artifacts, by name; not all of them need be there.
pub(crate) fn artifact_folders() -> impl Iterator<Item = String> {
    (0..=u8::MAX).map(|first| format!("{first:02x}"))
}

/// The folder part of a file's name.
pub(crate) fn folder_of(file_name: &str) -> &str {
    file_name.split('/').next().unwrap_or(file_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_whole_fingerprint() {
        let mut fingerprint = [0x0f; 32];
        fingerprint[0] = 0xab;
        let name = file_name(&Fingerprint::from_bytes(fingerprint));
        assert_eq!(name, format!("ab/ab{}.grain", "0f".repeat(31)));
        assert_eq!(folder_of(&name), "ab");
        assert_eq!(super::fingerprint(&name), Some(Fingerprint::from_bytes(fingerprint)));
        for other in [&name.to_uppercase(), &name.replacen("ab", "ac", 1), "ab/ab.grain", "ab"] {
            assert_eq!(super::fingerprint(other), None, "{other}");
        }
    }
}
