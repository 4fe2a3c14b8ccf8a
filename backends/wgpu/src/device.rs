//! A device of the application's, and what the key says of it.

use grainstore::{DeviceId, Family};
use grainstore_runtime::parts::digest;
use grainstore_runtime::{DeviceInfo, Target, Toolchain};
use wgpu::{AdapterInfo, Device, Features, Limits};

use crate::toolchain;

/// What is said of a device, also while nobody holds it.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) info: DeviceInfo,
    pub(crate) target: Target,
    pub(crate) toolchain: Toolchain,
}

impl Profile {
    pub(crate) fn of(index: u32, device: &Device) -> Self {
        let adapter = device.adapter_info();
        let info = DeviceInfo {
            id: DeviceId::new(Family::WGPU, index),
            name: adapter.name.clone(),
            driver: toolchain::driver(&adapter),
        };
        Self {
            info,
            target: Target::new(target(&adapter, device.features(), &device.limits())),
            toolchain: toolchain::of(&adapter),
        }
    }

    /// What its cache data is sealed for.
    pub(crate) fn seal(&self) -> String {
        format!("{} | {}", self.target.as_str(), self.toolchain.as_str())
    }
}

/// Features decide what wgpu makes of a shader, and limits what it refuses; both are those that the
/// application asked for, not those that the adapter could have given.
fn target(adapter: &AdapterInfo, features: Features, limits: &Limits) -> String {
    let AdapterInfo { name, vendor, device, device_type, backend, .. } = adapter;
    let (low, high) = (adapter.subgroup_min_size, adapter.subgroup_max_size);
    let mut names: Vec<_> = features.iter_names().map(|(name, _)| name).collect();
    names.sort_unstable();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(",") };
    format!(
        "{backend} {name} {vendor:04x}:{device:04x} {device_type:?}; subgroups {low} to {high}; \
         features {names}; limits {}",
        digest(format!("{limits:?}"))
    )
}

#[cfg(test)]
mod tests {
    use wgpu::{Backend, DeviceType};

    use super::*;

    fn adapter() -> AdapterInfo {
        let mut adapter = AdapterInfo::new(DeviceType::Cpu, Backend::Vulkan);
        adapter.name = "llvmpipe".into();
        adapter
    }

    #[test]
    fn whatever_changes_the_code_changes_the_target() {
        let (features, limits) = (Features::empty(), Limits::default());
        let base = target(&adapter(), features, &limits);
        assert_eq!(target(&adapter(), features, &limits), base);
        let wider = AdapterInfo { subgroup_max_size: 4, ..adapter() };
        let others = [
            target(&AdapterInfo { device: 7, ..adapter() }, features, &limits),
            target(&AdapterInfo { backend: Backend::Gl, ..adapter() }, features, &limits),
            target(&wider, features, &limits),
            target(&adapter(), Features::SHADER_F16, &limits),
            target(&adapter(), features, &Limits::downlevel_defaults()),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(*other, base);
            assert!(!others[..index].contains(other), "{other}");
        }
    }
}
