//! The driver's pipeline cache of one kernel: made, taken, and filled from an artifact.
//!
//! Each kernel has one of its own. A cache that several share has to be written again whenever one
//! of them is new, and grows with all that was ever in it.

use grainstore_runtime::BackendError;
use wgpu::{Device, Features, PipelineCache, PipelineCacheDescriptor};

use crate::scope;

/// The bytes that wgpu puts in front of the driver's own.
const WGPU_HEADER: usize = 64;

/// An empty one, where the device has them. Without one a kernel is built all the same.
pub(crate) fn empty(device: &Device) -> Option<PipelineCache> {
    if !device.features().contains(Features::PIPELINE_CACHE) {
        return None;
    }
    let descriptor = PipelineCacheDescriptor { label: None, data: None, fallback: false };
    // SAFETY: There is no data.
    let (cache, error) =
        scope::caught(device, || unsafe { device.create_pipeline_cache(&descriptor) });
    error.is_none().then_some(cache)
}

/// One filled with what [`data`] gave.
///
/// # Safety
/// The bytes are what [`data`] gave for a device of the same target and toolchain.
pub(crate) unsafe fn filled(device: &Device, data: &[u8]) -> Result<PipelineCache, BackendError> {
    let descriptor = PipelineCacheDescriptor { label: None, data: Some(data), fallback: false };
    // SAFETY: The caller says where the bytes are from.
    let (cache, error) =
        scope::caught(device, || unsafe { device.create_pipeline_cache(&descriptor) });
    match error {
        None => Ok(cache),
        Some(wgpu::Error::OutOfMemory { .. }) => {
            Err(BackendError::failed("create_pipeline_cache", "out of memory"))
        }
        Some(error) => Err(BackendError::InvalidArtifact { reason: error.to_string() }),
    }
}

/// What is in the cache, if the driver put anything there.
pub(crate) fn data(cache: &PipelineCache) -> Option<Vec<u8>> {
    cache.get_data().filter(|data| !is_header_only(data))
}

/// Drivers that keep no pipelines give a header and nothing behind it. It begins with its own
/// length, in four bytes, the least significant first.
fn is_header_only(data: &[u8]) -> bool {
    let Some(driver) = data.get(WGPU_HEADER..) else { return true };
    match driver.first_chunk() {
        Some(length) => driver.len() <= u32::from_le_bytes(*length) as usize,
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_alone_is_nothing() {
        let mut data = vec![0; WGPU_HEADER];
        assert!(is_header_only(&[]) && is_header_only(&data));
        data.extend(32_u32.to_le_bytes());
        assert!(is_header_only(&data));
        data.resize(WGPU_HEADER + 32, 0);
        assert!(is_header_only(&data));
        data.push(0);
        assert!(!is_header_only(&data));
    }
}
