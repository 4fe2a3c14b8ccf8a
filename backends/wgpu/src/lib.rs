//! Compute and render pipelines in WGSL, on the wgpu device that you already have.
//!
//! A module is the pipelines of one spec, with the device and the queue that they are for. So
//! whatever records passes in your application goes on to do so:
//!
//! ```no_run
//! use grainstore_runtime::{KernelSpec, Language, Runtime};
//! use grainstore_wgpu::{WgpuBackend, WgpuModule};
//!
//! # fn application() -> (wgpu::Device, wgpu::Queue) { unimplemented!() }
//! let (device, queue) = application();
//! let wgpu = WgpuBackend::builder().device(device, queue).build();
//! let runtime = Runtime::builder().backend(wgpu).capacity(64).build()?;
//!
//! let spec = KernelSpec::builder("double", Language::Wgsl)
//!     .source("override factor: f32;
//!              @group(0) @binding(0) var<storage, read_write> x: array<f32>;
//!              @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
//!                  if id.x < arrayLength(&x) { x[id.x] *= factor; }
//!              }")
//!     .entry("scale")
//!     .constant("factor", "2")
//!     .build()?;
//! let kernel = runtime.kernel(&runtime.devices()[0], &spec)?;
//! let pipeline = kernel.module::<WgpuModule>().ok_or("made by wgpu")?.compute("scale")?;
//! # let _ = pipeline;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The library
//! wgpu itself, which is linked and finds the drivers: none is looked for here. It is of the one major
//! version that this crate's version is for; the README says which.
//!
//! # Devices
//! Those that the application gives, numbered in that order; no instance, adapter or device is made
//! here, and no callback of theirs is set. [`WgpuBackendBuilder::device`] takes one that is there,
//! [`WgpuBackendBuilder::device_with`] a function that makes it. When the runtime destroys a device,
//! or forgets one that is lost, the backend drops its own handles of it. It is there again once
//! [`WgpuBackend::replace_device`] gave another, or, with a function, when it is next wanted.
//!
//! wgpu tells of a lost device only to the callback that the application set. A build on it is
//! [`BackendError::DeviceLost`](grainstore_runtime::BackendError::DeviceLost) all the same.
//!
//! # Sources
//! WGSL. Without an entry point, a module has a compute pipeline for each `@compute` function. With a
//! [`RenderState`] among its options, it is a render pipeline. The layout is derived from the
//! shader, or is the [`Layout`] among the options. Constants are the values of `override`s, by name
//! or number. Workgroup memory is zeroed at the start unless the option `--no-zero-workgroup-memory`
//! says that the kernel needs no zeros. WGSL has neither a preprocessor nor headers: defines and
//! headers are refused.
//!
//! ## Errors
//! They come through error scopes of the building thread, so the application's handlers see none of
//! them and builds on other threads keep theirs apart. Those of the source have its line, and the
//! place as `name.wgsl:line:column`.
//!
//! # What is in the key
//! The target is the adapter, with the features and limits that the device was asked for. The
//! toolchain is wgpu's major version and the driver's own version, which wgpu's
//! `pipeline_cache_key` leaves out. Variables that steer a driver's compiler are not in it: what is
//! kept is the driver's own cache, in which it finds nothing but what it would make itself.
//!
//! # The artifact
//! Where the device has [`Features::PIPELINE_CACHE`](wgpu::Features::PIPELINE_CACHE), the data of a
//! cache that holds this kernel alone. It is sealed: what is not byte for byte what this backend took
//! from a device of this target and toolchain, is refused before the driver sees it. It is never
//! merged with another's, and never written again after it was loaded.
//!
//! Where the feature is missing, and with drivers that put nothing into their caches, there is no
//! artifact: a new process compiles again. The shader's translation is not kept, since it takes less
//! than a millisecond.
//!
//! # What was tried where
//! wgpu over Vulkan and over GL, on Mesa's drivers for the processor, on Linux. They put nothing into
//! their caches.

mod artifact;
mod backend;
mod builder;
mod cache;
mod compile;
mod constants;
mod context;
mod device;
mod entries;
mod layout;
mod log;
mod module;
mod options;
mod render;
mod scope;
mod toolchain;

pub use backend::WgpuBackend;
pub use builder::WgpuBackendBuilder;
pub use layout::Layout;
pub use module::{Pipelines, WgpuModule};
pub use render::RenderState;
