//! What a stored kernel is made of, and what is checked before a driver sees it.
//!
//! Two members, each where there is something to keep: the data of the pipeline's own cache, and the
//! SPIR-V where it was made from another language. Then the seal.

use ash::vk;
use grainstore_runtime::{Artifact, BackendError, KernelSpec};

use crate::compile::{self, Compiled};
use crate::spirv;

const CACHE: &str = "pipeline.cache";
const SPIRV: &str = "kernel.spv";

/// What `vkGetPipelineCacheData` starts with: length, version, vendor, device, UUID.
const HEADER: usize = 16 + vk::UUID_SIZE;

/// `VK_PIPELINE_CACHE_HEADER_VERSION_ONE`.
const VERSION: u32 = 1;

/// Whose cache data it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheOwner {
    pub(crate) vendor: u32,
    pub(crate) device: u32,
    pub(crate) uuid: [u8; vk::UUID_SIZE],
}

/// The artifact of a kernel and its cache data, or none where there is nothing worth keeping.
pub(crate) fn pack(compiled: &Compiled, cache: Option<Vec<u8>>, seal: &str) -> Option<Artifact> {
    let words = compiled.translated.then(|| spirv::to_bytes(&compiled.words));
    let artifact = match (cache, words) {
        (Some(cache), Some(words)) => Artifact::new(CACHE, cache).with_member(SPIRV, words),
        (Some(cache), None) => Artifact::new(CACHE, cache),
        (None, Some(words)) => Artifact::new(SPIRV, words),
        (None, None) => return None,
    };
    Some(artifact.sealed(seal))
}

/// The kernel and its cache data, checked.
pub(crate) fn unpack<'a>(
    artifact: &'a Artifact,
    spec: &KernelSpec,
    owner: &CacheOwner,
    seal: &str,
) -> Result<(Compiled, &'a [u8]), BackendError> {
    artifact.check_seal(seal)?;
    let cache = artifact.member(CACHE).unwrap_or_default();
    if !cache.is_empty() {
        owner.check(cache).map_err(|reason| BackendError::InvalidArtifact { reason })?;
    }
    let compiled = match artifact.member(SPIRV) {
        Some(bytes) => compile::stored(spec, bytes)?,
        None => compile::compile(spec)?,
    };
    Ok((compiled, cache))
}

impl CacheOwner {
    /// Says whether the driver of this device wrote this header.
    fn check(&self, data: &[u8]) -> Result<(), String> {
        let Some((header, uuid)) =
            data.first_chunk::<HEADER>().and_then(|header| header.split_first_chunk::<16>())
        else {
            return Err(format!("{} bytes are too few for a pipeline cache", data.len()));
        };
        let (numbers, _) = header.as_chunks::<4>();
        let number = |index: usize| numbers.get(index).map_or(0, |it| u32::from_le_bytes(*it));
        let length = number(0) as usize;
        if length < HEADER || length > data.len() {
            return Err(format!("a pipeline cache's header of {length} bytes"));
        }
        if number(1) != VERSION {
            return Err(format!("a pipeline cache's header of version {}", number(1)));
        }
        let found = (number(2), number(3));
        if found != (self.vendor, self.device) {
            return Err(format!(
                "a pipeline cache of vendor {:#x}, device {:#x}, where this is {:#x}, {:#x}",
                found.0, found.1, self.vendor, self.device
            ));
        }
        if uuid != self.uuid {
            return Err("a pipeline cache of another driver (its UUID differs)".to_owned());
        }
        Ok(())
    }
}

/// The data where there is something in it: more than its header, and more than was there before
/// the pipeline was made, since some drivers write as much for an empty cache.
pub(crate) fn worth_keeping(data: Vec<u8>, empty: usize) -> Option<Vec<u8>> {
    let header = data.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
    (data.len() > header.max(HEADER).max(empty)).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: CacheOwner = CacheOwner { vendor: 0x10DE, device: 7, uuid: [9; 16] };

    fn data() -> Vec<u8> {
        let numbers = [32, VERSION, OWNER.vendor, OWNER.device];
        let mut data: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        data.extend([9; 16]);
        data.extend([1, 2, 3]);
        data
    }

    #[test]
    fn a_header_of_this_device_is_taken() {
        OWNER.check(&data()).unwrap();
    }

    #[test]
    fn any_other_header_is_refused() {
        for length in 0..32 {
            OWNER.check(&data()[..length]).unwrap_err();
        }
        for byte in 0..32 {
            let mut data = data();
            data[byte] ^= 0x80;
            OWNER.check(&data).unwrap_err();
        }
        let mut longer = data();
        longer[0] = 36;
        OWNER.check(&longer).unwrap_err();
    }

    #[test]
    fn a_header_alone_is_not_worth_keeping() {
        assert_eq!(worth_keeping(data()[..32].to_vec(), 32), None);
        assert_eq!(worth_keeping(data()[..32].to_vec(), 0), None);
        assert_eq!(worth_keeping(Vec::new(), 0), None);
        // A header, a count of nothing: the same as before.
        assert_eq!(worth_keeping(data(), 35), None);
        assert_eq!(worth_keeping(data(), 32), Some(data()));
    }
}
