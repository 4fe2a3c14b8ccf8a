//! The conformance battery on the fake driver: everything but the GPU. What passes here has the right
//! kernels, handles and order; what a real driver makes of it, only `conformance` can tell.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    grainstore_conformance::main(common::subject::Cuda::fake())
}
