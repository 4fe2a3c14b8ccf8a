//! Kernels in OpenCL C, on any OpenCL driver, loaded at run time.
//!
//! Building this crate needs no SDK. Running it needs OpenCL's loader library and one driver or
//! more; where they are missing, the error says which package would help.
//!
//! A module is a built program on one device. It hands out the native handles, so that whatever
//! launches kernels in your application goes on to do so. With the crate `opencl3`:
//!
//! ```no_run
//! use grainstore_opencl::OpenClBackend;
//! use grainstore_runtime::{Backend, KernelSpec, Language};
//! use opencl3::command_queue::CommandQueue;
//! use opencl3::context::Context;
//! use opencl3::kernel::{ExecuteKernel, Kernel};
//! use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE};
//! use opencl3::types::CL_TRUE;
//!
//! let opencl = OpenClBackend::new();
//! let device = opencl.devices()?[0].id;
//! let spec = KernelSpec::builder("double", Language::OpenClC)
//!     .source("kernel void twice(global float *x) { x[get_global_id(0)] *= FACTOR; }")
//!     .define("FACTOR", "2.0f")
//!     .entry("twice")
//!     .build()?;
//! let (module, artifact) = opencl.build(&device, &spec)?;
//!
//! let mut numbers = [1.0_f32, 2.0, 3.0];
//! let context = Context::new(module.retained_context()?, &[module.device()]);
//! let kernel = Kernel::new(module.kernel("twice")?.into_raw());
//! // SAFETY: the buffer is as large as the array, and the kernel takes one buffer.
//! unsafe {
//!     let queue = CommandQueue::create(&context, module.device(), 0)?;
//!     let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
//!     let buffer = Buffer::<f32>::create(&context, flags, 3, numbers.as_mut_ptr().cast())?;
//!     ExecuteKernel::new(&kernel)
//!         .set_arg(&buffer)
//!         .set_global_work_size(numbers.len())
//!         .enqueue_nd_range(&queue)?;
//!     queue.enqueue_read_buffer(&buffer, CL_TRUE, 0, &mut numbers, &[])?;
//! }
//! assert_eq!(numbers, [2.0, 4.0, 6.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The library
//! The one given to [`OpenClBackendBuilder::library`], else that in `GRAINSTORE_OPENCL_LIBRARY`, else
//! those in `OPENCL_DYLIB_PATH` (separated by `;`), else the system's `libOpenCL.so.1`, `OpenCL.dll` or framework. Once loaded it stays:
//! drivers have threads of their own.
//!
//! # Devices
//! All devices of all platforms, in the order of the platforms' names, and within a platform in its
//! driver's own order: the numbers are the same each time. Each has a context of its own, made at
//! the first build or load; with [`OpenClBackendBuilder::shared_contexts`] those of a platform share
//! one, and so can share buffers. Modules keep their context alive, so they may outlive
//! [`destroy_device`](grainstore_runtime::Backend::destroy_device); once no device holds it, the next
//! call makes a new one.
//!
//! An application that has a context already gets its modules in that one, with
//! [`OpenClBackendBuilder::build_in`]:
//!
//! ```no_run
//! use grainstore_opencl::OpenClBackend;
//! use grainstore_runtime::Runtime;
//! use opencl3::context::Context;
//! use opencl3::device::{CL_DEVICE_TYPE_GPU, Device, get_all_devices};
//!
//! let device = Device::new(get_all_devices(CL_DEVICE_TYPE_GPU)?[0]);
//! let context = Context::from_device(&device)?;
//! // SAFETY: the context lives, and it is of the system's library.
//! let opencl = unsafe { OpenClBackend::builder().build_in(context.get())? };
//! let id = opencl.device_of(device.id())?;
//! let runtime = Runtime::builder().backend(opencl).build()?;
//! let device = runtime.device(&id)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Sources
//! OpenCL C. The entry point is a kernel's name; without one, all kernels of the source are in the
//! module. With headers, the source is compiled against them and then linked (`clCompileProgram`,
//! `clLinkProgram`); without, it is built in one step. OpenCL C has no specialization constants, so
//! they are refused; a define does instead.
//!
//! Defines go in front of the source instead of among the options, since every driver reads quotes
//! and spaces there in its own way.
//!
//! # What is in the key
//! The target is the device's platform, name, vendor, version and word size; drivers for the
//! processor name its kind there. The toolchain is the platform's and driver's versions, the
//! device's extensions, and the variables that steer the known drivers' compilers (`POCL_*`,
//! `IGC_*` and others).
//!
//! What the key does not hold must not change the code, so headers come with the spec, by name, and
//! options are taken only where they are known to read no file. Others are refused, with what to do
//! instead; [`OpenClBackendBuilder::allow_option`] adds one that you know to be harmless.
//!
//! # The artifact
//! The driver's own binary. It is fetched during the build, since some drivers make code no sooner.
//! Drivers have been seen to crash on binaries that are cut or changed, so the
//! artifact is sealed: what is not byte for byte what this backend made, for this device and this
//! toolchain, is refused before the driver sees it.
//!
//! ## PoCL's first launch
//! PoCL's binaries hold code that is good for any local size. At the first launch with a local size
//! it compiles once more, for that size: a quarter of a second and more, loaded or not, and lost when
//! the process ends. Two variables of its own spare that:
//!
//! - `POCL_BINARY_SPECIALIZE_WG=16-16-1-goffs0-smallgrid` puts the code for that local size into the
//!   binaries (for launches without an offset and of less than 65,536 items in each direction; several
//!   are separated by commas). It matters to whoever compiles: set it for `grainstore warm`, and the
//!   artifacts it makes serve a process that never heard of it. It is not in the key, since it only
//!   adds code; so what was stored without it is not made anew.
//! - `POCL_WORK_GROUP_SPECIALIZATION=0` has launches take the code for any size. It costs what the
//!   compiler makes of a known size, and it is in the key.
//!
//! PoCL also unpacks binaries into its cache folder (`POCL_CACHE_DIR`) when it loads them, and waits
//! for the disk: a folder in memory makes loading several times as fast. Leave that cache on. With
//! `POCL_KERNEL_CACHE=0`, PoCL 3.1 deletes what it unpacked as soon as one program of that binary is
//! released, and ends the process if another one is being loaded from it just then.
//!
//! # What was tried where
//! PoCL on Linux, with one device and with several in one context. No GPU's driver has run it yet.

mod artifact;
mod backend;
mod builder;
mod compile;
mod context;
mod contexts;
mod device;
mod driver;
mod found;
mod handle;
mod library;
mod log;
mod module;
mod options;
mod program;
mod status;
mod toolchain;

pub use backend::OpenClBackend;
pub use builder::OpenClBackendBuilder;
pub use module::{OpenClKernel, OpenClModule};
