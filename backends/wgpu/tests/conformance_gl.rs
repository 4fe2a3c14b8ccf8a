//! The same battery on wgpu over GL, which has no pipeline caches.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/subject.rs"]
mod subject;

use std::process::ExitCode;

use subject::Wgpu;
use wgpu::Backends;

fn main() -> ExitCode {
    grainstore_conformance::main(Wgpu::over(Backends::GL))
}
