//! From a group to the bytes of its file.

use std::time::Duration;

use bytes::Bytes;

use super::{
    FIXED, MAGIC, MAX_FILE, PLAIN, SIGNATURE, TRAILER, UNKNOWN_TIME, VERSION, aligned,
    content_digest, seal,
};
use crate::key::EntryKey;
use crate::{Group, MAX_METADATA, Refusal};

/// The file of this group under this key. Equal arguments give equal bytes, on every machine.
///
/// # Errors
/// What [`Group::check`] says, and what is too large for the format.
pub fn encode(key: &impl EntryKey, group: &Group) -> Result<Bytes, Refusal> {
    group.check()?;
    let metadata = match group.metadata() {
        Some(metadata) => metadata.to_string(),
        None => String::new(),
    };
    if metadata.len() > MAX_METADATA {
        return Err(Refusal::MetadataTooLong { length: metadata.len() });
    }

    let header = variable_header(key, group, &metadata)?;
    let too_large = || Refusal::TooLarge { what: "the group" };
    let header_length = aligned((FIXED + header.len()) as u64).ok_or_else(too_large)?;
    let length = group
        .members()
        .iter()
        .try_fold(header_length, |sum, member| sum.checked_add(aligned(member.bytes.len() as u64)?))
        .and_then(|content| content.checked_add(TRAILER as u64))
        .filter(|length| *length <= MAX_FILE)
        .ok_or_else(too_large)?;
    // The header is a part of the file, so the limit of the file holds for it: it fits 32 bits
    // unless it fills them, and then the members did not fit.
    let header_length = u32::try_from(header_length).map_err(|_| too_large())?;
    let capacity = usize::try_from(length).map_err(|_| too_large())?;

    let mut file = Vec::with_capacity(capacity);
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&header_length.to_le_bytes());
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(key.fingerprint().as_bytes());
    file.extend_from_slice(&nanoseconds(group.compile_time()).to_le_bytes());
    file.extend_from_slice(&header);
    pad(&mut file);
    for member in group.members() {
        file.extend_from_slice(&member.bytes);
        pad(&mut file);
    }
    let signature = [0; SIGNATURE];
    let seal = seal(&content_digest(&file), &signature);
    file.extend_from_slice(&signature);
    file.extend_from_slice(&seal);
    debug_assert_eq!(file.len() as u64, length);
    Ok(file.into())
}

fn variable_header(key: &impl EntryKey, group: &Group, metadata: &str) -> Result<Vec<u8>, Refusal> {
    let mut header = Vec::new();
    text(&mut header, key.namespace())?;
    text(&mut header, group.toolchain().unwrap_or_default())?;
    text(&mut header, metadata)?;
    let mut fields = Vec::new();
    let mut field_count = 0;
    for (name, value) in key.fields() {
        text(&mut fields, &name)?;
        text(&mut fields, &value)?;
        field_count += 1;
    }
    count(&mut header, field_count)?;
    header.extend_from_slice(&fields);
    count(&mut header, group.members().len())?;
    for member in group.members() {
        text(&mut header, &member.name)?;
        header.extend_from_slice(&PLAIN.to_le_bytes());
        header.extend_from_slice(&(member.bytes.len() as u64).to_le_bytes());
    }
    Ok(header)
}

fn count(header: &mut Vec<u8>, count: usize) -> Result<(), Refusal> {
    let count = u32::try_from(count).map_err(|_| Refusal::TooLarge { what: "the header" })?;
    header.extend_from_slice(&count.to_le_bytes());
    Ok(())
}

fn text(header: &mut Vec<u8>, text: &str) -> Result<(), Refusal> {
    count(header, text.len())?;
    header.extend_from_slice(text.as_bytes());
    Ok(())
}

fn pad(file: &mut Vec<u8>) {
    file.resize(file.len().next_multiple_of(super::ALIGN), 0);
}

/// A time that is too long for the field is kept as the longest that fits.
fn nanoseconds(time: Option<Duration>) -> u64 {
    time.map_or(UNKNOWN_TIME, |time| {
        u64::try_from(time.as_nanos()).map_or(UNKNOWN_TIME - 1, |nanos| nanos.min(UNKNOWN_TIME - 1))
    })
}
