//! Kernels in CUDA C++, PTX or CUBIN, compiled by NVRTC and loaded by the driver.
mod artifact;
mod backend;
mod builder;
mod compile;
mod context;
mod cubin;
mod device;
mod driver;
mod handle;
mod identity;
mod library;
mod log;
mod module;
mod names;
mod nvrtc;
mod options;
mod status;
mod target;
mod toolchain;

pub use backend::CudaBackend;
pub use builder::CudaBackendBuilder;
pub use module::{CudaModule, RawHandle};
pub use target::{Code, Features};
