//! From an artifact back to a kernel, also in another process, and what is refused on the way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::assembler::add_constant;
use common::launch::{check_saxpy, launch};
use common::{in_child, on_vulkan, saxpy, spirv};
use grainstore::DeviceId;
use grainstore_conformance::testing::is_child;
use grainstore_runtime::{Artifact, Backend, BackendError, KernelSpec};
use grainstore_vulkan::VulkanBackend;
use grainstore_vulkan::ash::vk;

/// What artifacts of this kernel are sealed for.
fn label(vulkan: &VulkanBackend, device: DeviceId, spec: &KernelSpec) -> String {
    let target = vulkan.target(&device).unwrap();
    let plain = vulkan.toolchain(&target).unwrap();
    let whole = vulkan.toolchain_for(&target, spec).unwrap();
    let translator = whole.as_str().strip_suffix(plain.as_str()).unwrap();
    format!("{translator}{} | {}", target.as_str(), plain.as_str())
}

fn refusal(
    vulkan: &VulkanBackend,
    device: DeviceId,
    spec: &KernelSpec,
    artifact: &Artifact,
) -> String {
    match vulkan.load(&device, spec, artifact) {
        Err(BackendError::InvalidArtifact { reason }) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was loaded"),
    }
}

#[test]
fn an_artifact_is_loaded_in_another_process() {
    let test = "an_artifact_is_loaded_in_another_process";
    if let Some(folder) = std::env::var_os("LOAD_FROM") {
        let read = |name: &str| std::fs::read(std::path::Path::new(&folder).join(name));
        let mut members: Vec<_> = ["pipeline.cache", "kernel.spv", "seal"]
            .into_iter()
            .filter_map(|name| Some((name, read(name).ok()?)))
            .collect();
        let (name, bytes) = members.remove(0);
        let artifact = members
            .into_iter()
            .fold(Artifact::new(name, bytes), |all, (name, bytes)| all.with_member(name, bytes));
        let vulkan = VulkanBackend::new();
        let device = vulkan.devices().unwrap()[0].id;
        let module = vulkan.load(&device, &saxpy(), &artifact).unwrap();
        assert_eq!(module.entry(), "saxpy");
        // Where the driver keeps code and says where it came from, it came from there.
        let kept = artifact.member("pipeline.cache").is_some();
        assert!(!kept || module.from_cache() != Some(false), "compiled again");
        check_saxpy(&module);
        return;
    }
    on_vulkan(test, |vulkan, device| {
        let artifact = vulkan.build(&device, &saxpy()).unwrap().1.unwrap();
        let folder = tempfile::tempdir().unwrap();
        for member in artifact.members() {
            std::fs::write(folder.path().join(&member.name), &member.bytes).unwrap();
        }
        in_child(test, &[("LOAD_FROM", folder.path().to_str().unwrap())]);
    });
}

#[test]
fn what_was_translated_is_kept_and_not_translated_again() {
    let test = "what_was_translated_is_kept_and_not_translated_again";
    on_vulkan(test, |vulkan, device| {
        let spec = saxpy();
        let artifact = vulkan.build(&device, &spec).unwrap().1.unwrap();
        let words = grainstore_vulkan::to_spirv(&spec).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(artifact.member("kernel.spv").unwrap(), bytes);
        // The words of another kernel, sealed: they are what is loaded.
        let other = grainstore_vulkan::to_spirv(&spirv(&add_constant()).build().unwrap()).unwrap();
        let bytes: Vec<u8> = other.iter().flat_map(|word| word.to_le_bytes()).collect();
        let spec = common::wgsl("no WGSL at all").build().unwrap();
        let artifact = Artifact::new("kernel.spv", bytes).sealed(&label(vulkan, device, &spec));
        let module = vulkan.load(&device, &spec, &artifact).unwrap();
        assert_eq!(launch(&module, &[&[1; 64]], &[], 1), [[2; 64]]);
    });
}

#[test]
fn a_cache_of_nothing_is_never_kept() {
    on_vulkan("a_cache_of_nothing_is_never_kept", |vulkan, device| {
        let (module, artifact) =
            vulkan.build(&device, &spirv(&add_constant()).build().unwrap()).unwrap();
        // SPIR-V as it came is no reason for an artifact, and neither is a header.
        let cache = artifact.as_ref().map(Artifact::binary);
        assert!(cache.is_none_or(|cache| cache.len() > 32), "{cache:?}");
        if let Some(artifact) = artifact {
            assert_eq!(artifact.members()[0].name, "pipeline.cache");
            assert!(artifact.member("kernel.spv").is_none());
        }
        drop(module);
    });
}

#[test]
fn a_broken_artifact_never_reaches_the_driver() {
    on_vulkan("a_broken_artifact_never_reaches_the_driver", |vulkan, device| {
        let spec = saxpy();
        let artifact = vulkan.build(&device, &spec).unwrap().1.unwrap();
        let (name, bytes) = (artifact.members()[0].name.clone(), artifact.binary());
        let with_rest = |bytes: Vec<u8>| {
            let rest = artifact.members().iter().skip(1);
            rest.fold(Artifact::new(&name, bytes), |all, member| {
                all.with_member(&member.name, member.bytes.clone())
            })
        };
        for length in [0, 1, 20, bytes.len() / 2, bytes.len() - 1] {
            let unsealed = Artifact::new(&name, bytes[..length].to_vec());
            assert!(refusal(vulkan, device, &spec, &unsealed).contains("no seal"));
            refusal(vulkan, device, &spec, &with_rest(bytes[..length].to_vec()));
        }
        for index in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[index] ^= 1;
            refusal(vulkan, device, &spec, &with_rest(flipped));
        }
        let foreign = Artifact::new(&name, bytes.to_vec()).sealed("another device");
        let reason = refusal(vulkan, device, &spec, &foreign);
        assert!(reason.contains("made for `another device`"), "{reason}");
        // Sealed, and no SPIR-V all the same.
        let sealed = Artifact::new("kernel.spv", bytes[..bytes.len() / 8 * 4].to_vec())
            .sealed(&label(vulkan, device, &spec));
        let reason = refusal(vulkan, device, &spec, &sealed);
        assert!(reason.contains("SPIR-V is malformed"), "{reason}");
    });
}

#[test]
fn another_drivers_cache_never_reaches_this_one() {
    on_vulkan("another_drivers_cache_never_reaches_this_one", |vulkan, device| {
        let spec = spirv(&add_constant()).build().unwrap();
        let (module, _) = vulkan.build(&device, &spec).unwrap();
        let raw = module.device().device();
        // SAFETY: the cache is made and destroyed here.
        let data = unsafe {
            let create = vk::PipelineCacheCreateInfo::default();
            let cache = raw.create_pipeline_cache(&create, None).unwrap();
            let data = raw.get_pipeline_cache_data(cache).unwrap();
            raw.destroy_pipeline_cache(cache, None);
            data
        };
        let label = label(vulkan, device, &spec);
        let sealed = |data: Vec<u8>| Artifact::new("pipeline.cache", data).sealed(&label);
        let good = vulkan.load(&device, &spec, &sealed(data.clone())).unwrap();
        assert_eq!(launch(&good, &[&[1; 64]], &[], 1), [[2; 64]]);
        // Version, vendor, device, UUID.
        for (byte, words) in [(4, "version"), (8, "vendor"), (12, "device"), (16, "UUID")] {
            let mut other = data.clone();
            other[byte] ^= 0x40;
            let reason = refusal(vulkan, device, &spec, &sealed(other));
            assert!(reason.contains(words), "{reason}");
        }
        let reason = refusal(vulkan, device, &spec, &sealed(data[..31].to_vec()));
        assert!(reason.contains("too few"), "{reason}");
    });
}

#[test]
fn a_missing_entry_point_is_no_fault_of_the_artifact() {
    on_vulkan("a_missing_entry_point_is_no_fault_of_the_artifact", |vulkan, device| {
        let artifact = vulkan.build(&device, &saxpy()).unwrap().1.unwrap();
        let other = common::wgsl(common::SAXPY).entry("other").build().unwrap();
        let error = vulkan.load(&device, &other, &artifact).unwrap_err();
        assert_eq!(error.to_string(), "there is no entry point `other`; there are: saxpy");
    });
}

#[test]
fn the_toolchain_holds_the_variables_that_steer_the_compiler() {
    let test = "the_toolchain_holds_the_variables_that_steer_the_compiler";
    if !is_child() {
        let variables = [("LP_NATIVE_VECTOR_WIDTH", "128"), ("MESA_LOG_FILE", "/dev/null")];
        in_child(test, &variables);
        return;
    }
    on_vulkan(test, |vulkan, device| {
        let toolchain = vulkan.toolchain(&vulkan.target(&device).unwrap()).unwrap();
        let text = toolchain.as_str();
        assert!(text.contains("LP_NATIVE_VECTOR_WIDTH=128"), "{text}");
        assert!(!text.contains("MESA_"), "{text}");
    });
}
