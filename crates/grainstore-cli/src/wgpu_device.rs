//! The device that this program gives its wgpu backend, made when it is first wanted.

use grainstore_runtime::BackendError;
use grainstore_wgpu::WgpuBackend;
use wgpu::{
    Device, DeviceDescriptor, Features, Instance, InstanceDescriptor, PowerPreference, Queue,
    RequestAdapterOptions,
};

/// With the fastest adapter that wgpu finds, on whatever API.
pub(crate) fn backend() -> WgpuBackend {
    WgpuBackend::builder().device_with(make).build()
}

fn make() -> Result<(Device, Queue), BackendError> {
    pollster::block_on(async {
        let instance = Instance::new(InstanceDescriptor::new_without_display_handle());
        let options = RequestAdapterOptions {
            power_preference: PowerPreference::HighPerformance,
            ..RequestAdapterOptions::default()
        };
        let adapter = instance.request_adapter(&options).await.map_err(|error| {
            BackendError::missing(
                format!("an adapter for wgpu ({error})"),
                "install a driver for Vulkan or OpenGL, such as Mesa's (on Debian \
                 `mesa-vulkan-drivers` and `libvulkan1`)",
            )
        })?;
        let wanted = DeviceDescriptor {
            // What a driver compiled can be kept, where it has this.
            required_features: adapter.features() & Features::PIPELINE_CACHE,
            required_limits: adapter.limits(),
            ..DeviceDescriptor::default()
        };
        let device = adapter.request_device(&wanted).await;
        device.map_err(|error| BackendError::failed("request_device", error))
    })
}
