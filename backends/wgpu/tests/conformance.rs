//! The battery of tests that every backend passes, on wgpu over the system's best API.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/subject.rs"]
mod subject;

use std::process::ExitCode;

use subject::Wgpu;
use wgpu::Backends;

fn main() -> ExitCode {
    grainstore_conformance::main(Wgpu::over(Backends::PRIMARY))
}
