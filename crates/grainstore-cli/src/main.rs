//! The program `grainstore`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    grainstore_cli::run(std::env::args_os())
}
