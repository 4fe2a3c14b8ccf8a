//! The example kernels, and what it takes to trust them: for each a plain Rust reference, inputs, a
//! launch on the processor and one for all GPU APIs, and a comparison with a stated tolerance.
//!
//! The kernels themselves, each in several languages, and their manifest lie in `kernels/`. The
//! programs in `examples/` are the ones to copy from; this library is what their tests share. The
//! features `cuda`, `vulkan` and `wgpu` add what it takes to launch there. The last two are heavier to
//! build than all the rest, and the first wants a card, so they are off by default.

mod absent;
mod case;
mod compare;
#[cfg(feature = "cuda")]
mod cuda;
mod element;
mod error;
mod generator;
mod gpu;
pub mod kernels;
mod margin;
mod opencl;
mod variant;
#[cfg(feature = "vulkan")]
mod vulkan;
#[cfg(feature = "wgpu")]
mod wgpu;

#[cfg(feature = "cuda")]
pub use self::cuda::CudaSession;
#[cfg(feature = "vulkan")]
pub use self::vulkan::VulkanSession;
#[cfg(feature = "wgpu")]
pub use self::wgpu::WgpuSession;
pub use absent::{Absent, REQUIRE, absent};
pub use case::Case;
pub use compare::{Agreement, Mismatch, Tolerance, compare};
pub use element::Element;
pub use error::CaseError;
pub use generator::Generator;
pub use opencl::OpenClSession;
pub use variant::Variant;

use grainstore_host::HostModule;

/// A compiled kernel, loaded and ready to be launched. Where a module is of one function, a kernel of
/// several is as many modules.
#[derive(Debug)]
pub enum Launcher<'a> {
    /// A shared object in this process.
    Host(&'a HostModule),
    /// A program on an OpenCL device, with a queue of its own.
    OpenCl(OpenClSession<'a>),
    /// A module on a CUDA device.
    #[cfg(feature = "cuda")]
    Cuda(CudaSession<'a>),
    /// Pipelines on a Vulkan device.
    #[cfg(feature = "vulkan")]
    Vulkan(VulkanSession<'a>),
    /// Pipelines on a wgpu device.
    #[cfg(feature = "wgpu")]
    Wgpu(WgpuSession<'a>),
}
