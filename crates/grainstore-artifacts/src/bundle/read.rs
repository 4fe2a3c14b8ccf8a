//! A bundle as it lies on disk, open.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use grainstore::Fingerprint;
use tar::Archive;

use super::index::{self, Place};
use crate::folder::open_trusted;
use crate::format::MAX_FILE;
use crate::{Error, positioned};

/// The index of more artifacts than any bundle has.
const LONGEST_INDEX: u64 = 1 << 30;

/// An open bundle. Its index is in memory, its artifacts are read when they are asked for.
#[derive(Debug)]
pub(crate) struct Bundle {
    path: PathBuf,
    file: File,
    places: Vec<Place>,
}

impl Bundle {
    /// Opens the bundle at this path, if others could not have changed it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let path = std::path::absolute(path).map_err(Error::bundle("find", path))?;
        let file = open_trusted(&path).map_err(Error::below(&path))?;
        let places = places(&file).map_err(Error::bundle("read", &path))?;
        let Some(places) = places else {
            let what = "it is no whole bundle of this version: get or pack it anew";
            let error = io::Error::new(io::ErrorKind::InvalidData, what);
            return Err(Error::bundle("open", path)(error));
        };
        Ok(Self { path, file, places })
    }

    /// The bytes of an artifact's file, unverified, if there is one.
    pub(crate) fn read(&self, fingerprint: &Fingerprint) -> Result<Option<Bytes>, Error> {
        let Ok(at) = self.places.binary_search_by_key(fingerprint, |place| place.fingerprint)
        else {
            return Ok(None);
        };
        let place = self.places[at];
        // A length that no artifact has is that of no artifact, and read by nobody.
        let length = usize::try_from(place.length.min(MAX_FILE)).unwrap_or(usize::MAX);
        let mut file = vec![0; length];
        positioned::read(&self.file, &mut file, place.offset)
            .map_err(Error::bundle("read", &self.path))?;
        Ok(Some(file.into()))
    }

    /// Of which artifacts it is.
    pub(crate) fn fingerprints(&self) -> impl Iterator<Item = Fingerprint> {
        self.places.iter().map(|place| place.fingerprint)
    }
}

/// None if this is no bundle.
fn places(file: &File) -> io::Result<Option<Vec<Place>>> {
    let length = file.metadata()?.len();
    let mut archive = Archive::new(file);
    // What is no archive has a first entry that is an error.
    let Some(Ok(mut entry)) = archive.entries()?.next() else { return Ok(None) };
    if entry.path_bytes() != index::NAME.as_bytes() || entry.size() > LONGEST_INDEX {
        return Ok(None);
    }
    let mut index = Vec::new();
    match io::Read::read_to_end(&mut entry, &mut index) {
        Ok(_) => Ok(index::read(&index, length)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
