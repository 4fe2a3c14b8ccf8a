//! Kernels in CUDA C++, PTX or CUBIN, compiled by NVRTC and loaded by NVIDIA's driver.
//!
//! Building this crate needs no CUDA toolkit. Both libraries are found at run time, and each does its
//! own part: NVRTC compiles without a driver and a GPU, also for machines that this one is not
//! ([`compile_for`](grainstore_runtime::Backend::compile_for), `grainstore warm --target sm_90`); the
//! driver loads what was compiled anywhere. Where one is missing, the error says what would help.
//!
//! A module hands out the native handles, so that whatever launches kernels in your application goes
//! on to do so. ([`driver_function`](CudaModule::driver_function) is for applications that have
//! nothing of the kind.) With the crate `cudarc`:
//!
//! ```no_run
//! use cudarc::driver::{CudaContext, DevicePtrMut, result::launch_kernel};
//! use grainstore_cuda::CudaBackend;
//! use grainstore_runtime::{Backend, KernelSpec, Language};
//!
//! let cuda = CudaBackend::new();
//! let device = cuda.devices()?[0].id;
//! let spec = KernelSpec::builder("scale", Language::CudaCpp)
//!     .source("template <typename T> __global__ void scale(T *x) { x[threadIdx.x] *= FACTOR; }")
//!     .define("FACTOR", "2")
//!     .entry("scale<float>")
//!     .build()?;
//! let (module, artifact) = cuda.build(&device, &spec)?;
//!
//! // The device's primary context, which the module is loaded into.
//! let stream = CudaContext::new(0)?.default_stream();
//! let mut numbers = stream.clone_htod(&[1.0_f32, 2.0, 3.0])?;
//! {
//!     let (mut address, _writing) = numbers.device_ptr_mut(&stream);
//!     let function = module.function("scale<float>")?.cast();
//!     let mut arguments = [(&raw mut address).cast()];
//!     let (one, three) = ((1, 1, 1), (3, 1, 1));
//!     // SAFETY: the kernel takes one buffer, which has as many numbers as there are threads.
//!     unsafe { launch_kernel(function, one, three, 0, stream.cu_stream(), &mut arguments)? };
//! }
//! assert_eq!(stream.clone_dtoh(&numbers)?, [2.0, 4.0, 6.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The libraries
//! **NVRTC**: the file or folder given to [`CudaBackendBuilder::nvrtc`], else that in
//! `GRAINSTORE_NVRTC_LIBRARY`, else the newest in the toolkit that `CUDA_PATH` or `CUDA_HOME` names,
//! else the system's `libnvrtc.so.13`, `.12` or `.11.2`, or `nvrtc64_*.dll` in `PATH`, else that of
//! `/usr/local/cuda`. CUDA 11.2 is the oldest that has all that is called; 11.8 was
//! tried, 12.9 and 13.5 are tested.
//!
//! **The driver**: the file given to [`CudaBackendBuilder::library`], else that in
//! `GRAINSTORE_CUDA_LIBRARY`, else the system's `libcuda.so.1` or `nvcuda.dll`.
//!
//! Once loaded they stay: both have threads of their own.
//!
//! # Devices
//! Devices have the driver's own numbers, so `CUDA_VISIBLE_DEVICES` chooses and orders them. Modules
//! are loaded into the device's *primary* context, which all libraries of a process share. It is
//! retained at the first build or load, and modules keep it, so they may outlive
//! [`destroy_device`](grainstore_runtime::Backend::destroy_device). Who has a context of their own
//! gives it to [`CudaBackendBuilder::build_in`]. Every call makes that context current and then puts
//! back what was: the thread's own is never changed.
//!
//! After a kernel has crashed, no call in its context succeeds any more, whoever makes it. If
//! [`forget_device`](grainstore_runtime::Backend::forget_device), which the runtime's `device_lost`
//! calls, finds the primary context in that state, it has the driver reset it: what other libraries
//! of the process have there is as lost as before, and the next request makes a new one. Some faults
//! of the hardware outlast that, and need a new process.
//!
//! ## Targets and forms of code
//! | target | code | runs on |
//! |---|---|---|
//! | `sm_90` | CUBIN | compute capability 9.0 |
//! | `sm_90a` | CUBIN | 9.0, with all that it alone has |
//! | `sm_100f` | CUBIN | the family of 10.0, with what it shares |
//! | `compute_90` | PTX | 9.0 and all later, translated by the driver whenever it is loaded |
//!
//! A device's target is the CUBIN of its own architecture; [`features`](CudaBackendBuilder::features)
//! adds the letter. Where NVRTC is older than the device, it is the newest PTX that NVRTC knows, so
//! that the device is of use before the toolkit is updated; [`code`](CudaBackendBuilder::code) chooses
//! PTX in any case. [`Code::framework`] names the two ways, `CUDA/CUBIN` and `CUDA/PTX`.
//!
//! # Sources
//! **CUDA C++.** The entry point is a name or an expression of C++: `saxpy`, `math::scale<float, 4>`.
//! What it is called in the code is kept in the artifact. Without an entry point, all kernels that the
//! source has or instantiates are in the module. NVRTC brings no header files, not even `cuda_fp16.h`.
//!
//! **PTX**, ready-made, for an `sm_` target: the driver makes CUBIN of it once, and that is the
//! artifact. For a `compute_` target it is the artifact itself. **CUBIN**, ready-made, is looked through
//! first, since the driver reads as far as the file's tables say. Neither needs NVRTC.
//!
//! # What is in the key
//! The target; the source with headers, defines, options and entry point; and who makes the code.
//! For CUDA C++ that is NVRTC: its version, digests of its two libraries' headers (no call tells the
//! whole version), and the variables that steer it (`NVRTC_*`, `NVVM_*`). The driver's version is not
//! among them: NVRTC's output does not depend on it, artifacts made elsewhere must be found here, and
//! a driver that is too old for one says so. Only for PTX that the driver makes CUBIN of is its
//! version in the key.
//!
//! What the key does not hold must not change the code. Headers come with the spec, by name; each is
//! included by exactly that name, also from another header. NVRTC would look for others in the
//! process's current folder and is told not to; an absolute path that is written out is refused. Options are taken only
//! where they are known to read no file. Others are refused, with what to do instead;
//! [`CudaBackendBuilder::allow_option`] adds one that you know to be harmless.
//!
//! Defines go in front of the source instead of among the options: there they would come before
//! NVRTC's own headers, which have templates, and a define named `T` would break them.
//!
//! # The artifact
//! The code as `kernel.cubin` or `kernel.ptx`, and its `names`. It is sealed: what is not byte for byte
//! what this backend made, for this target and this toolchain, is refused before the driver sees it.
//!
//! # What was tried where
//! Compiling: with the real NVRTC. Everything about the driver: against a fake one, which shows order
//! and contexts and nothing about GPUs. The conformance battery also runs on a GPU, where there is one.

mod artifact;
mod assembler;
mod backend;
mod builder;
mod compile;
mod context;
mod cubin;
mod device;
mod driver;
mod found;
mod handle;
mod identity;
mod library;
mod loaded;
mod module;
mod names;
mod nvrtc;
mod nvrtc_paths;
mod options;
mod ready;
mod status;
mod target;
mod toolchain;

pub use backend::CudaBackend;
pub use builder::CudaBackendBuilder;
pub use module::{CudaModule, RawHandle};
pub use target::{Code, Features};
