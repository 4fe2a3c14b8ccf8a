//! What the store takes, roughly, without looking at it: what tells a put that it is time to prune.
//!
//! The length of the file `use` is the estimate, in blocks of 4 KiB. Whoever writes an artifact
//! lengthens the file by as many bytes as the artifact has blocks, which is one step of the
//! operating system, among any number of processes. Whoever counts sets its length. It errs upward,
//! since what is replaced or removed is not taken off, and a count puts it right.

use std::io::{self, Write};

use crate::folder::Folder;

const NAME: &str = "use";
const BLOCK: u64 = 4096;

/// Adds this many bytes. Gives the estimate with them; none where nobody has counted yet.
pub(crate) fn add(folder: &Folder, bytes: u64) -> io::Result<Option<u64>> {
    let file = match folder.open_to_append(NAME) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let blocks = usize::try_from(bytes.div_ceil(BLOCK)).unwrap_or(usize::MAX);
    const ZEROS: [u8; 256] = [0; 256];
    let mut left = blocks;
    while left > 0 {
        let part = left.min(ZEROS.len());
        (&file).write_all(&ZEROS[..part])?;
        left -= part;
    }
    Ok(Some(file.metadata()?.len().saturating_mul(BLOCK)))
}

/// Sets it to what was counted. (The file has a hole for all that was never written.)
pub(crate) fn set(folder: &Folder, bytes: u64) -> io::Result<()> {
    folder.open_or_create(NAME)?.set_len(bytes.div_ceil(BLOCK))
}
