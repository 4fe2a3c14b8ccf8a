//! Compute pipelines of SPIR-V, WGSL and GLSL, on any Vulkan driver, loaded at run time.
//!
//! Building this crate needs no SDK. Running it needs Vulkan's loader library and one driver or
//! more, of Vulkan 1.1 or newer; where they are missing, the error says which package would help.
//!
//! A module is a compute pipeline of one entry point with its shader module and layouts, which are
//! read from the code itself. It hands out the native handles, those of the crate `ash`, so that
//! whatever records and submits in your application goes on to do so:
//!
//! ```no_run
//! use grainstore_runtime::{Backend, KernelSpec, Language};
//! use grainstore_vulkan::ash::vk;
//! use grainstore_vulkan::VulkanBackend;
//!
//! # fn record() -> (vk::CommandBuffer, vk::DescriptorSet, vk::Fence) { unimplemented!() }
//! let vulkan = VulkanBackend::new();
//! let device = vulkan.devices()?[0].id;
//! let spec = KernelSpec::builder("double", Language::Wgsl)
//!     .source(
//!         "override factor: f32;
//!          @group(0) @binding(0) var<storage, read_write> x: array<f32>;
//!          @compute @workgroup_size(64)
//!          fn twice(@builtin(global_invocation_id) id: vec3<u32>) {
//!              if id.x < arrayLength(&x) { x[id.x] *= factor; }
//!          }",
//!     )
//!     .constant("factor", "2.0")
//!     .entry("twice")
//!     .build()?;
//! let (module, artifact) = vulkan.build(&device, &spec)?;
//!
//! let device = module.device();
//! let vk = device.device();
//! // A command buffer that is being recorded, a set of `module.set_layouts()[0]`, a fence.
//! let (commands, set, fence) = record();
//! let groups = 1_000_000_u32.div_ceil(module.workgroup_size()[0]);
//! let compute = vk::PipelineBindPoint::COMPUTE;
//! // SAFETY: the handles are this device's, and the set binds what the kernel takes.
//! unsafe {
//!     vk.cmd_bind_pipeline(commands, compute, module.pipeline());
//!     vk.cmd_bind_descriptor_sets(commands, compute, module.layout(), 0, &[set], &[]);
//!     vk.cmd_dispatch(commands, groups, 1, 1);
//!     vk.end_command_buffer(commands)?;
//!     let work = vk::SubmitInfo::default().command_buffers(std::slice::from_ref(&commands));
//!     vk.queue_submit(*device.queue(), &[work], fence)?;
//!     vk.wait_for_fences(&[fence], true, u64::MAX)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/saxpy.rs` is the whole of it, with the cache around.
//!
//! # The library
//! The one given to [`VulkanBackendBuilder::library`], else that in `GRAINSTORE_VULKAN_LIBRARY`, else
//! the system's `libvulkan.so.1`, `vulkan-1.dll` or `libvulkan.dylib`. Once loaded it stays: drivers
//! have threads of their own.
//!
//! # Devices
//! Either all that the drivers have, or those of your own.
//!
//! Of the former, cards come first and processors last, and equal ones in the order of their UUIDs:
//! the numbers are the same each time. Each has a logical device of its own, made at the first build
//! or load, with one queue of the first family that computes, and with those features that kernels
//! use and the device has: 8, 16 and 64-bit types and their storage, atomics, subgroups, the memory
//! model, buffer addresses, timeline semaphores and synchronization 2; not `robustBufferAccess`.
//! Modules keep the device alive, so they may outlive
//! [`destroy_device`](grainstore_runtime::Backend::destroy_device); so does the [`Arc`] that
//! [`VulkanModule::device`] gives, which you keep as long as you have anything on the device. When
//! the last goes, what was submitted is waited for.
//!
//! Most applications have a device already: [`VulkanBackendBuilder::device`] takes it, as
//! [`ExistingDevice`]. Nothing is submitted to it, and it is not destroyed. After it was lost,
//! [`VulkanBackend::replace_device`] takes the next.
//!
//! Vulkan lets one thread at a time use a queue. [`VulkanDevice::queue`] locks it.
//!
//! # Sources
//! **SPIR-V**, as it is. Its specialization constants go by number, or by name where the module has
//! names. Options, defines and headers are refused, since there is nothing to apply them to.
//!
//! **WGSL**, through naga, with the feature `wgsl`. Constants are its overrides, by name or number;
//! they are filled in before the driver sees the code. Its promises are kept: indices stay in their
//! bounds, loops end, division by zero has a result, workgroup memory starts as zero. The options
//! `--unchecked` and `--no-zero-workgroup-memory` give them up for speed.
//!
//! **GLSL**, through naga, with the feature `glsl`: version 440 and up, the entry point is `main`.
//! Defines go to its preprocessor; headers are refused, since naga resolves none. It promises
//! nothing of the above; `--checked` and `--zero-workgroup-memory` ask for it.
//!
//! Push constants are `var<immediate>` in WGSL and `layout(push_constant)` in GLSL. [`to_spirv`]
//! translates and checks with no device at all.
//!
//! An entry point is named, unless the module has one only.
//!
//! ## What is checked
//! Drivers trust the code that they get. So whatever came from naga was validated by it, and all
//! SPIR-V is walked over, instruction by instruction: cut or garbled modules, capabilities that the
//! device was not given (for devices of the user's own this is not known), workgroups, push
//! constants and descriptors beyond its limits are errors. What a function's instructions do is not
//! looked at, so SPIR-V from elsewhere should have passed `spirv-val` once. An array of descriptors
//! needs a length.
//!
//! # What is in the key
//! The target is the device's name, vendor and number, its driver, the version of Vulkan, the size of
//! subgroups and the enabled features. The toolchain is the driver's name, version and UUID, the UUID of its
//! pipeline caches, which alone identifies nothing (some drivers have a constant there), and the
//! variables that steer the known drivers' compilers (`MESA_*`, `RADV_*`, `LP_*`, `__GL_*` and
//! others). A processor's device UUID is in it too, a card's is not: equal cards share their kernels.
//! For WGSL and GLSL, naga's version is in front, with a digest of what it makes of a probe.
//!
//! # The artifact
//! Each pipeline is made with a pipeline cache of its own, empty for a build, and its data is the
//! member `pipeline.cache`: where there is anything in it. A header alone is never kept. Loading
//! starts from that data, and never stores it again: some drivers append to what they get. It is not
//! merged with anything.
//!
//! What was translated from WGSL or GLSL is the member `kernel.spv`, so that a load needs no naga.
//! A driver that keeps nothing in its caches (lavapipe, SwiftShader) leaves just this; with SPIR-V as
//! the source, there is no artifact then, and each process builds.
//!
//! The artifact is sealed: what is not byte for byte what this backend made, for this device and
//! this toolchain, is refused before the driver sees it; and so is a cache whose header names
//! another vendor, device or UUID. Code for a device that is not here can't be made: its driver makes
//! it.
//!
//! # What was tried where
//! lavapipe on Linux, which keeps nothing in its caches. The conformance battery also runs on a GPU,
//! where there is one.
//!
//! [`Arc`]: std::sync::Arc

mod artifact;
mod backend;
mod builder;
mod compile;
mod context;
mod device;
mod driver;
mod existing;
mod features;
mod found;
mod library;
mod module;
mod options;
mod pipeline;
mod spirv;
mod status;
mod toolchain;
#[cfg(any(feature = "wgsl", feature = "glsl"))]
mod translate;

pub use ash;

pub use backend::VulkanBackend;
pub use builder::VulkanBackendBuilder;
pub use compile::to_spirv;
pub use context::{QueueGuard, VulkanDevice};
pub use existing::ExistingDevice;
pub use module::VulkanModule;
pub use spirv::Binding;
