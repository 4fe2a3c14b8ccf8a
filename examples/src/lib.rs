//! The example kernels, and what it takes to trust them: for each a plain Rust reference, inputs,
//! a launcher for the host and for OpenCL, and a comparison with a stated tolerance.
//!
//! The kernels themselves, in C and in OpenCL C, and their manifest lie in `kernels/`. The programs
//! in `examples/` are the ones to copy from; this library is what their tests share.

mod absent;
mod case;
mod compare;
mod element;
mod error;
mod generator;
pub mod kernels;
mod margin;
mod opencl;
mod variant;

pub use absent::{Absent, REQUIRE, absent};
pub use case::Case;
pub use compare::{Agreement, Mismatch, Tolerance, compare};
pub use element::Element;
pub use error::CaseError;
pub use generator::Generator;
pub use opencl::Session;
pub use variant::Variant;

use grainstore_host::HostModule;

/// A compiled kernel, loaded and ready to be launched.
#[derive(Debug)]
pub enum Launcher<'a> {
    /// A shared object in this process.
    Host(&'a HostModule),
    /// A program on an OpenCL device, with a queue of its own.
    OpenCl(Session<'a>),
}
