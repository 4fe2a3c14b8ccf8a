//! From bytes to a group: a pure function that believes nothing.
//!
//! Lengths and the digest come first, so that what is interpreted is what was once written. The
//! digest is no signature, though: anybody can compute one. So what it covers is checked as well,
//! and no length in it is believed further than the bytes reach.

use std::time::Duration;

use bytes::Bytes;
use grainstore::Fingerprint;

use super::cursor::Cursor;
use super::{
    FIXED, MAGIC, MAX_FILE, PLAIN, Rejection, SEAL, SIGNATURE, Signature, TRAILER, UNKNOWN_TIME,
    VERSION, aligned, content_digest, seal,
};
use crate::{Group, MAX_MEMBERS, MAX_METADATA, Refusal};

/// A file, verified: whose it is, and the group in it.
#[derive(Clone, Debug)]
pub struct Entry {
    fingerprint: Fingerprint,
    content_digest: [u8; SEAL],
    signature: Option<Signature>,
    namespace: String,
    /// The framed names and values; whole and UTF-8, as `parse` has seen.
    fields: Bytes,
    group: Group,
}

impl Entry {
    /// The fingerprint of its key.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The BLAKE3 digest of all that the file says, but for the signature, which is made over it.
    #[must_use]
    pub fn content_digest(&self) -> &[u8; SEAL] {
        &self.content_digest
    }

    /// The signature, if the file has one. Nobody has checked it.
    #[must_use]
    pub fn signature(&self) -> Option<&Signature> {
        self.signature.as_ref()
    }

    /// The namespace of its key.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The readable fields of its key: name and value, in the key's own order.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        Fields { cursor: Cursor::new(&self.fields) }
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The group alone.
    #[must_use]
    pub fn into_group(self) -> Group {
        self.group
    }
}

/// The readable fields of an [`Entry`]'s key. Decoded as they are asked for: a load needs none.
#[derive(Clone)]
pub struct Fields<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let mut text = || std::str::from_utf8(self.cursor.framed()?).ok();
        Some((text()?, text()?))
    }
}

/// Reads a file. The members share `file`'s buffer, nothing is copied.
///
/// With a fingerprint, a file of any other key is rejected; without one, whichever key it says it
/// is of is taken, and the caller looks at [`Entry::fingerprint`].
///
/// # Errors
/// The first thing that is wrong with it.
pub fn parse(file: &Bytes, fingerprint: Option<&Fingerprint>) -> Result<Entry, Rejection> {
    let (found, content_digest) = check_envelope(file)?;
    if let Some(wanted) = fingerprint
        && *wanted != found
    {
        return Err(Rejection::Fingerprint { found });
    }
    let (content, trailer) = file.split_at(file.len() - TRAILER);
    let signature = Signature::read(&trailer[..SIGNATURE])?;
    parse_content(file, content, Head { fingerprint: found, content_digest, signature })
}

/// What is known of a file before its content is looked at.
#[derive(Clone, Copy)]
struct Head {
    fingerprint: Fingerprint,
    content_digest: [u8; SEAL],
    signature: Option<Signature>,
}

/// Whether this is a whole file of this version. Gives the fingerprint that it carries, and the
/// digest of its content.
fn check_envelope(file: &[u8]) -> Result<(Fingerprint, [u8; SEAL]), Rejection> {
    if file.is_empty() {
        return Err(Rejection::Empty);
    }
    let truncated = || Rejection::Truncated { found: file.len() as u64 };
    let begin = file.len().min(MAGIC.len());
    if file[..begin] != MAGIC[..begin] {
        return Err(Rejection::NotAnArtifact);
    }
    let mut header = Cursor::new(&file[begin..]);
    let version = header.u32().ok_or_else(truncated)?;
    if version != VERSION {
        return Err(Rejection::Version { found: version });
    }
    let _header_length = header.u32().ok_or_else(truncated)?;
    let length = header.u64().ok_or_else(truncated)?;
    let fingerprint = header.array().ok_or_else(truncated)?;
    let found = file.len() as u64;
    if found < length || file.len() < FIXED + TRAILER {
        return Err(truncated());
    }
    if found > length || found > MAX_FILE {
        return Err(Rejection::Overlong { found });
    }
    let (signed, stored) = file.split_at(file.len() - SEAL);
    let (content, signature) = signed.split_at(signed.len() - SIGNATURE);
    let content_digest = content_digest(content);
    if seal(&content_digest, signature) != *stored {
        return Err(Rejection::Digest);
    }
    Ok((Fingerprint::from_bytes(fingerprint), content_digest))
}

/// Interprets what the seal covers. `content` is the part of `file` before its trailer.
fn parse_content(file: &Bytes, content: &[u8], head: Head) -> Result<Entry, Rejection> {
    let malformed = |part| move || Rejection::Malformed { part };
    let mut fixed = Cursor::new(&content[MAGIC.len() + 4..FIXED]);
    let header_length = fixed.u32().and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    let compile_time = Cursor::new(&content[FIXED - 8..FIXED]).u64().unwrap_or(UNKNOWN_TIME);

    let header = content.get(FIXED..header_length).ok_or_else(malformed("header length"))?;
    let mut cursor = Cursor::new(header);
    let namespace = text(&mut cursor).ok_or_else(malformed("namespace"))?;
    let toolchain = text(&mut cursor).ok_or_else(malformed("toolchain"))?;
    let metadata = cursor.framed().ok_or_else(malformed("metadata"))?;
    let fields = skip_fields(&mut cursor).ok_or_else(malformed("list of key fields"))?;

    let mut group = Group::default().with_toolchain(toolchain);
    if compile_time != UNKNOWN_TIME {
        group = group.with_compile_time(Duration::from_nanos(compile_time));
    }
    if !metadata.is_empty() {
        if metadata.len() > MAX_METADATA {
            let refusal = Refusal::MetadataTooLong { length: metadata.len() };
            return Err(Rejection::Refused(refusal));
        }
        let value = serde_json::from_slice(metadata).map_err(|_| malformed("metadata")())?;
        group = group.with_metadata(value);
    }

    let count = cursor.u32().ok_or_else(malformed("table of members"))?;
    if count as usize > MAX_MEMBERS {
        return Err(Rejection::Refused(Refusal::TooManyMembers { count: count as usize }));
    }
    // Where a member lies follows from the lengths before it: members can't overlap, leave gaps or
    // reach into the header, because there is no way to say so.
    let mut begin = header_length;
    for _ in 0..count {
        let name = text(&mut cursor).ok_or_else(malformed("table of members"))?;
        if cursor.u32().ok_or_else(malformed("table of members"))? != PLAIN {
            return Err(malformed("kind of compression")());
        }
        let end = cursor
            .u64()
            .and_then(|length| usize::try_from(length).ok())
            .and_then(|length| begin.checked_add(length))
            .filter(|end| *end <= content.len())
            .ok_or_else(malformed("table of members"))?;
        group = group.with_member(name, file.slice(begin..end));
        begin = padded_end(content, end).ok_or_else(malformed("padding"))?;
    }
    if begin != content.len() {
        return Err(malformed("table of members")());
    }
    if padded_end(content, header_length - cursor.rest().len()) != Some(header_length) {
        return Err(malformed("padding")());
    }
    group.check().map_err(Rejection::Refused)?;
    let Head { fingerprint, content_digest, signature } = head;
    Ok(Entry {
        fingerprint,
        content_digest,
        signature,
        namespace: namespace.to_owned(),
        fields: file.slice_ref(fields),
        group,
    })
}

fn text<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    std::str::from_utf8(cursor.framed()?).ok()
}

/// Walks over the key's fields, and gives the bytes that hold them.
fn skip_fields<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let count = cursor.u32()?;
    let before = cursor.rest();
    for _ in 0..count {
        text(cursor)?;
        text(cursor)?;
    }
    before.get(..before.len() - cursor.rest().len())
}

/// Where the zeros end that follow a part which ends at `end`; `None` if they are not zeros.
fn padded_end(content: &[u8], end: usize) -> Option<usize> {
    let padded = usize::try_from(aligned(end as u64)?).ok()?;
    content.get(end..padded)?.iter().all(|byte| *byte == 0).then_some(padded)
}
