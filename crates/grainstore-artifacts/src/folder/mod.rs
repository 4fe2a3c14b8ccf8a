//! The store's folder, held open: every call on a file in it goes through the handle, so that a
//! folder swapped behind the name is never read by mistake.
//!
//! On Unix these are the calls relative to a folder's descriptor, with trust checked on what was
//! opened. Elsewhere they are plain calls on paths.

#[cfg(not(unix))]
mod plain;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod way;

#[cfg(not(unix))]
pub(crate) use plain::Folder;
#[cfg(unix)]
pub(crate) use unix::Folder;
