//! Compute pipelines of SPIR-V, WGSL and GLSL, on any Vulkan driver, loaded at run time.

mod artifact;
mod backend;
mod compile;
mod device;
mod driver;
mod existing;
mod features;
mod library;
mod logical;
mod module;
mod options;
mod pipeline;
mod spirv;
mod status;
#[cfg(any(feature = "wgsl", feature = "glsl"))]
mod translate;

pub use ash;

pub use backend::{VulkanBackend, VulkanBackendBuilder};
pub use compile::to_spirv;
pub use existing::ExistingDevice;
pub use logical::{QueueGuard, VulkanDevice};
pub use module::VulkanModule;
pub use spirv::Binding;
