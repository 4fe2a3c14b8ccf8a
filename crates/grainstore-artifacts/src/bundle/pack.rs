//! Writing a bundle, and taking one into a store.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use bytes::Bytes;
use grainstore::Fingerprint;
use tar::{Builder, EntryType, Header};

use super::index::{self, Place};
use super::{Bundle, Packed, Unpacked};
use crate::format;
use crate::store::{layout, unique};
use crate::{ArtifactStore, Entry, Error};

/// A tar archive is made of blocks: a header, then the bytes, filled up with zeros.
const BLOCK: u64 = 512;

impl ArtifactStore {
    /// Writes those artifacts that are chosen into a bundle: one file, the same bytes wherever and
    /// whenever the same artifacts are packed. It appears under its name in one step. What is broken
    /// is left out.
    ///
    /// The bundle serves as a [layer](crate::Options::layer) below another store, as it is or
    /// unpacked by any tool.
    ///
    /// # Errors
    /// [`Error::Io`] if the store can't be read, [`Error::Bundle`] if the bundle can't be written, or
    /// an artifact was removed meanwhile, [`Error::Stopped`] as the [options](crate::Options::stop_when)
    /// say. Nothing unfinished stays.
    pub fn pack(
        &self,
        bundle: impl AsRef<Path>,
        choose: impl FnMut(&Entry) -> bool,
    ) -> Result<Packed, Error> {
        let path = bundle.as_ref();
        let path = std::path::absolute(path).map_err(Error::bundle("find", path))?;
        let chosen = self.chosen(choose)?;
        let name = format!(".{}", unique());
        let unfinished = path.parent().unwrap_or(&path).join(name);
        let written = File::create_new(&unfinished)
            .and_then(|file| self.write_bundle(BufWriter::new(file), &chosen)?.flush())
            .and_then(|()| fs::rename(&unfinished, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&unfinished);
            return Err(Error::bundle("write", path)(error));
        }
        let bytes = fs::metadata(&path).map_err(Error::bundle("look at", &path))?.len();
        Ok(Packed { path, artifacts: chosen.len() as u64, bytes })
    }

    /// Puts the artifacts of a bundle into this store, each as it is, with its signature. Those that
    /// are there already stay. Each is verified; what is broken is left out and listed.
    ///
    /// # Errors
    /// [`Error::Bundle`] if it is no whole bundle, or can't be read, [`Error::Untrusted`] if others
    /// could have changed it, [`Error::Io`] if the store can't be written, and [`Error::Stopped`] as the
    /// [options](crate::Options::stop_when) say. What was taken until then stays.
    pub fn unpack(&self, bundle: impl AsRef<Path>) -> Result<Unpacked, Error> {
        self.check_writable()?;
        let bundle = Bundle::open(bundle.as_ref())?;
        let mut unpacked = Unpacked::default();
        for fingerprint in bundle.fingerprints() {
            self.check_stop()?;
            let Some(file) = bundle.read(&fingerprint)? else { continue };
            if let Err(rejection) = format::parse(&file, Some(&fingerprint)) {
                unpacked.rejected.push((fingerprint, rejection));
                continue;
            }
            if self.take(&fingerprint, &file)? {
                unpacked.added += 1;
            } else {
                unpacked.present += 1;
            }
        }
        Ok(unpacked)
    }

    /// Fingerprint and length of each whole artifact that is chosen, sorted.
    pub(super) fn chosen(
        &self,
        mut choose: impl FnMut(&Entry) -> bool,
    ) -> Result<Vec<(Fingerprint, u64)>, Error> {
        let mut chosen = Vec::new();
        for scanned in self.files() {
            self.check_stop()?;
            let scanned = scanned?;
            if let Ok(entry) = &scanned.entry
                && choose(entry)
            {
                chosen.push((entry.fingerprint(), scanned.length));
            }
        }
        chosen.sort_unstable();
        Ok(chosen)
    }

    /// Writes the archive of these artifacts, and gives the writer back.
    pub(super) fn write_bundle<W: Write>(
        &self,
        writer: W,
        chosen: &[(Fingerprint, u64)],
    ) -> io::Result<W> {
        if u32::try_from(chosen.len()).is_err() {
            return Err(io::Error::other("these are more artifacts than a bundle can hold"));
        }
        let mut archive = Builder::new(writer);
        let index = index::write(&places(chosen));
        append(&mut archive, index::NAME, &index)?;
        folder(&mut archive, layout::VERSION_FOLDER)?;
        let mut last = None;
        for (fingerprint, length) in chosen {
            self.check_stop().map_err(io::Error::other)?;
            let name = layout::file_name(fingerprint);
            let within = layout::folder_of(&name).to_owned();
            if last.as_ref() != Some(&within) {
                folder(&mut archive, &format!("{}/{within}", layout::VERSION_FOLDER))?;
                last = Some(within);
            }
            let file = self.whole_file(fingerprint, *length)?;
            append(&mut archive, &format!("{}/{name}", layout::VERSION_FOLDER), &file)?;
        }
        archive.into_inner()
    }

    /// The file that was seen before, read once more.
    fn whole_file(&self, fingerprint: &Fingerprint, length: u64) -> io::Result<Bytes> {
        let read = self.read_file(fingerprint).map_err(io::Error::other)?;
        let is_the_same = |file: &Bytes| {
            file.len() as u64 == length && format::parse(file, Some(fingerprint)).is_ok()
        };
        read.filter(is_the_same).ok_or_else(|| {
            io::Error::other(format!(
                "the artifact {fingerprint} was removed or replaced while it was packed: pack again"
            ))
        })
    }
}

/// Where the artifacts will lie, from their lengths alone.
fn places(chosen: &[(Fingerprint, u64)]) -> Vec<Place> {
    let filled = |length: u64| BLOCK + length.next_multiple_of(BLOCK);
    // The index, and the folder of the version.
    let mut at = filled(index::length(chosen.len())) + BLOCK;
    let mut last = None;
    let place = |(fingerprint, length): &(Fingerprint, u64)| {
        let first = fingerprint.as_bytes()[0];
        if last != Some(first) {
            at += BLOCK;
            last = Some(first);
        }
        let offset = at + BLOCK;
        at += filled(*length);
        Place { fingerprint: *fingerprint, offset, length: *length }
    };
    chosen.iter().map(place).collect()
}

fn append<W: Write>(archive: &mut Builder<W>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = header(EntryType::Regular, 0o444);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, name, bytes)
}

fn folder<W: Write>(archive: &mut Builder<W>, name: &str) -> io::Result<()> {
    let mut header = header(EntryType::Directory, 0o755);
    header.set_size(0);
    archive.append_data(&mut header, format!("{name}/"), io::empty())
}

/// Root's, at the beginning of time: nothing of this machine.
fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}
