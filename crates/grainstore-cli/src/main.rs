//! The program `grainstore`.

use std::process::ExitCode;

fn main() -> ExitCode {
    grainstore_cli::run(std::env::args_os())
}
