//! Who makes the code of a kernel, as keys say it.

use grainstore_runtime::Toolchain;
use wgpu::AdapterInfo;

/// The major version of wgpu that this crate is for. Its cache data and its names for features and
/// states stay the same within one.
const WGPU: u32 = 30;

/// wgpu, and the driver below it.
pub(crate) fn of(adapter: &AdapterInfo) -> Toolchain {
    Toolchain::new(format!("wgpu {WGPU}; {}", driver(adapter)))
}

/// The driver and its version. The vendor's and the device's number, by which wgpu itself tells
/// cache data apart, say nothing of it.
pub(crate) fn driver(adapter: &AdapterInfo) -> String {
    let AdapterInfo { backend, driver, driver_info, .. } = adapter;
    format!("{backend} driver {driver} {driver_info}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use wgpu::{Backend, DeviceType};

    use super::*;

    #[test]
    fn the_drivers_version_is_said() {
        let mut adapter = AdapterInfo::new(DeviceType::Cpu, Backend::Vulkan);
        adapter.driver = "llvmpipe".into();
        adapter.driver_info = "Mesa 22.3.6".into();
        assert_eq!(driver(&adapter), "vulkan driver llvmpipe Mesa 22.3.6");
        assert_eq!(of(&adapter).as_str(), "wgpu 30; vulkan driver llvmpipe Mesa 22.3.6");
    }
}
