//! The conformance battery on an NVIDIA GPU; where there is none, each check says so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    grainstore_conformance::main(common::subject::Cuda::real())
}
