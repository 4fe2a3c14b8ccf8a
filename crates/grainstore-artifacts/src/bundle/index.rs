//! The index of a bundle: where each artifact lies, by fingerprint.

use grainstore::Fingerprint;

use crate::format::Cursor;

/// The name of the index in the archive.
pub(crate) const NAME: &str = "grainstore-bundle";

const MAGIC: [u8; 8] = *b"\x89GRB\r\n\x1a\n";
const VERSION: u32 = 1;
const HEAD: usize = 16;
const PLACE: usize = 48;
const DIGEST: usize = 32;

/// Where an artifact lies in the bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// How long the index of so many artifacts is.
pub(crate) fn length(artifacts: usize) -> u64 {
    (HEAD + PLACE * artifacts + DIGEST) as u64
}

/// The bytes of an index. The places are sorted by fingerprint, and there are at most `u32::MAX`.
pub(crate) fn write(places: &[Place]) -> Vec<u8> {
    let mut index = Vec::with_capacity(HEAD + PLACE * places.len() + DIGEST);
    index.extend_from_slice(&MAGIC);
    index.extend_from_slice(&VERSION.to_le_bytes());
    index.extend_from_slice(&(places.len() as u32).to_le_bytes());
    for place in places {
        index.extend_from_slice(place.fingerprint.as_bytes());
        index.extend_from_slice(&place.offset.to_le_bytes());
        index.extend_from_slice(&place.length.to_le_bytes());
    }
    let digest = blake3::hash(&index);
    index.extend_from_slice(digest.as_bytes());
    index
}

/// Reads an index of a bundle that is `bundle` bytes long. Whatever is wrong with it, it is none.
pub(crate) fn read(index: &[u8], bundle: u64) -> Option<Vec<Place>> {
    let (head, digest) = index.split_at_checked(index.len().checked_sub(DIGEST)?)?;
    if blake3::hash(head).as_bytes() != digest {
        return None;
    }
    let mut cursor = Cursor::new(head);
    if cursor.array()? != MAGIC || cursor.u32()? != VERSION {
        return None;
    }
    let count = cursor.u32()? as usize;
    if cursor.rest().len() != count.checked_mul(PLACE)? {
        return None;
    }
    let mut places: Vec<Place> = Vec::with_capacity(count);
    for _ in 0..count {
        let fingerprint = Fingerprint::from_bytes(cursor.array()?);
        let place = Place { fingerprint, offset: cursor.u64()?, length: cursor.u64()? };
        let is_inside = place.offset.checked_add(place.length)? <= bundle;
        let is_next = places.last().is_none_or(|last| last.fingerprint < fingerprint);
        if !is_inside || !is_next {
            return None;
        }
        places.push(place);
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(first: u8, offset: u64, length: u64) -> Place {
        Place { fingerprint: Fingerprint::from_bytes([first; 32]), offset, length }
    }

    #[test]
    fn a8_what_is_written_is_read_and_every_cut_and_flip_is_none() {
        let places = [place(1, 100, 50), place(2, 150, 50), place(9, 0, 200)];
        let index = write(&places);
        assert_eq!(index.len() as u64, length(3));
        assert_eq!(read(&index, 200), Some(places.to_vec()));
        assert_eq!(read(&write(&[]), 0), Some(vec![]));
        for at in 0..index.len() {
            assert_eq!(read(&index[..at], 200), None);
            for bit in 0..8 {
                let mut flipped = index.clone();
                flipped[at] ^= 1 << bit;
                assert_eq!(read(&flipped, 200), None);
            }
        }
    }

    #[test]
    fn a8_what_leads_outside_or_is_not_sorted_is_none_although_the_digest_is_right() {
        assert_eq!(read(&write(&[place(1, 100, 101)]), 200), None);
        assert_eq!(read(&write(&[place(1, u64::MAX, 2)]), 200), None);
        assert_eq!(read(&write(&[place(2, 0, 1), place(1, 0, 1)]), 200), None);
        assert_eq!(read(&write(&[place(1, 0, 1), place(1, 0, 1)]), 200), None);
    }
}
