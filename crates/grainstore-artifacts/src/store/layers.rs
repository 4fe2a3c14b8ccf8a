//! What lies below a store: artifacts that are only read, shipped with an image or a program.

use std::path::Path;

use bytes::Bytes;
use grainstore::Fingerprint;

use super::layout::{self, VERSION_FOLDER};
use crate::Error;
use crate::bundle::Bundle;
use crate::folder::Folder;
use crate::format::MAX_FILE;

/// One layer.
#[derive(Debug)]
pub(super) enum Layer {
    /// Laid out as a store is: an unpacked bundle, a mounted image, another store.
    Folder(Folder),
    /// A bundle as it is.
    Bundle(Bundle),
}

impl Layer {
    /// Opens it. Nothing is made, and nothing will be written.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let is_folder = path.metadata().map_err(Error::io("open the layer", path))?.is_dir();
        if !is_folder {
            return Bundle::open(path).map(Self::Bundle);
        }
        match Folder::open_existing(path, VERSION_FOLDER).map_err(Error::below(path))? {
            Some(folder) => Ok(Self::Folder(folder)),
            None => {
                let missing = std::io::ErrorKind::NotFound.into();
                Err(Error::io("open the layer", path.join(VERSION_FOLDER))(missing))
            }
        }
    }

    /// The bytes of an artifact's file, unverified, if there is one.
    pub(super) fn read(&self, fingerprint: &Fingerprint) -> Result<Option<Bytes>, Error> {
        match self {
            Self::Folder(folder) => folder
                .read(&layout::file_name(fingerprint), MAX_FILE, None)
                .map_err(Error::below(folder.path())),
            Self::Bundle(bundle) => bundle.read(fingerprint),
        }
    }
}
