//! Reading and writing at a place in a file that several processes have open.

use std::fs::File;
use std::io;

/// Writes all of it, there.
pub(crate) fn write(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, at);
    #[cfg(not(unix))]
    {
        let _ = (file, bytes, at);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Fills the buffer from there.
pub(crate) fn read(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, at);
    #[cfg(not(unix))]
    {
        let _ = (file, buffer, at);
        Err(io::ErrorKind::Unsupported.into())
    }
}
