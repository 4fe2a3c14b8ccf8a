//! From an artifact back to pipelines, and what is refused on the way.
//!
//! The drivers that run without a GPU leave nothing in their caches, so what is loaded here is
//! mostly sealed by hand.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{ADD, DEVICE, add, launch, on_wgpu, spec};
use grainstore_runtime::{Artifact, Backend, BackendError};
use grainstore_wgpu::WgpuBackend;
use wgpu::{Device, Features, PipelineCacheDescriptor};

/// What artifacts of this device are sealed for.
fn label(wgpu: &WgpuBackend) -> String {
    let target = wgpu.target(&DEVICE).unwrap();
    let toolchain = wgpu.toolchain(&target).unwrap();
    format!("{} | {}", target.as_str(), toolchain.as_str())
}

/// The data of an empty cache; none where the device has no caches.
fn empty_data(device: &Device) -> Option<Vec<u8>> {
    device.features().contains(Features::PIPELINE_CACHE).then(|| {
        let descriptor = PipelineCacheDescriptor { label: None, data: None, fallback: false };
        // SAFETY: There is no data.
        unsafe { device.create_pipeline_cache(&descriptor) }.get_data().unwrap()
    })
}

/// Without this, what a driver keeps would be taken for a header, or a header for what it keeps.
#[test]
fn data_is_wgpus_header_and_then_the_drivers() {
    on_wgpu("data_is_wgpus_header_and_then_the_drivers", |_, device| {
        let Some(data) = empty_data(device) else { return };
        let length = u32::from_le_bytes(data[64..68].try_into().unwrap());
        assert_eq!(length, 32, "the length of every Vulkan driver's header");
    });
}

#[test]
fn an_artifact_is_made_where_the_driver_has_something_to_keep() {
    on_wgpu("an_artifact_is_made_where_the_driver_has_something_to_keep", |wgpu, device| {
        let (_, artifact) = wgpu.build(&DEVICE, &add(1)).unwrap();
        let Some(empty) = empty_data(device) else {
            assert!(artifact.is_none(), "there is no cache that it could come from");
            return;
        };
        // Of a header only, none is made.
        if let Some(artifact) = artifact {
            assert!(artifact.binary().len() > empty.len());
            artifact.check_seal(&label(wgpu)).unwrap();
            let module = wgpu.load(&DEVICE, &add(1), &artifact).unwrap();
            assert_eq!(launch(&module, "add", &[1]), [2]);
        }
    });
}

#[test]
fn what_was_sealed_for_this_device_is_loaded() {
    on_wgpu("what_was_sealed_for_this_device_is_loaded", |wgpu, device| {
        let Some(data) = empty_data(device) else { return };
        let artifact = Artifact::new("pipeline-cache.bin", data).sealed(&label(wgpu));
        let module = wgpu.load(&DEVICE, &add(2), &artifact).unwrap();
        assert_eq!(launch(&module, "add", &[1]), [3]);
        // The spec's faults are the spec's.
        let other = spec(ADD).entry("other").build().unwrap();
        let error = wgpu.load(&DEVICE, &other, &artifact).unwrap_err();
        assert!(matches!(error, BackendError::NoEntryPoint { .. }), "{error}");
    });
}

#[test]
fn a_broken_or_foreign_artifact_never_reaches_the_driver() {
    on_wgpu("a_broken_or_foreign_artifact_never_reaches_the_driver", |wgpu, device| {
        let data = empty_data(device).unwrap_or_else(|| vec![7; 96]);
        let seal = Artifact::new("pipeline-cache.bin", data.clone()).sealed(&label(wgpu));
        let seal = seal.member("seal").unwrap().to_vec();
        let refuse = |artifact: &Artifact| match wgpu.load(&DEVICE, &add(1), artifact) {
            Err(BackendError::InvalidArtifact { reason }) => reason,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was loaded"),
        };
        for length in 0..data.len() {
            let cut = Artifact::new("pipeline-cache.bin", data[..length].to_vec());
            assert!(refuse(&cut).contains("no seal"));
            refuse(&cut.with_member("seal", seal.clone()));
        }
        for bit in 0..data.len() * 8 {
            let mut flipped = data.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            refuse(&Artifact::new("pipeline-cache.bin", flipped).with_member("seal", seal.clone()));
        }
        let foreign = Artifact::new("pipeline-cache.bin", data).sealed("another device");
        assert!(refuse(&foreign).contains("made for `another device`"));
    });
}

#[test]
fn what_wgpu_refuses_is_an_invalid_artifact() {
    on_wgpu("what_wgpu_refuses_is_an_invalid_artifact", |wgpu, _| {
        for bytes in [&b""[..], b"garbage that no driver would take for a cache of its own"] {
            let artifact = Artifact::new("pipeline-cache.bin", bytes).sealed(&label(wgpu));
            let error = wgpu.load(&DEVICE, &add(1), &artifact).unwrap_err();
            assert!(matches!(error, BackendError::InvalidArtifact { .. }), "{error}");
        }
    });
}
