//! The program `grainstore`, as a library, so that its parts can be tested.
//!
//! A command parses its manifest ([`manifest`]), does its work ([`warm`], [`doctor`], [`store`]) and ends with
//! an exit code ([`exit`]); what it has to say goes through [`output`].
#![allow(rustdoc::private_intra_doc_links)]
// What launches a kernel is let off, module by module, in `doctor`.
#![deny(unsafe_code)]

mod args;
mod backends;
mod doctor;
mod exit;
mod interrupt;
mod manifest;
mod output;
mod store;
mod warm;
#[cfg(feature = "wgpu")]
mod wgpu_device;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Cli, Command};
use exit::Exit;

/// Does what the command line says, program name first, and gives the process's exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::read(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, and go to standard output.
            let _ = error.print();
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    let result = match &cli.command {
        Command::Warm(arguments) => warm::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Ls(arguments) => store::ls(arguments),
        Command::Show(arguments) => store::show(arguments),
        Command::Stats(arguments) => store::stats(arguments),
        Command::Explain(arguments) => store::explain(arguments),
        Command::Verify(arguments) => store::verify(arguments),
        Command::Prune(arguments) => store::prune(arguments),
        Command::Clear(arguments) => store::clear(arguments),
        Command::Pack(arguments) => store::pack(arguments),
        Command::Unpack(arguments) => store::unpack(arguments),
    };
    let exit = result.unwrap_or_else(|failure| {
        match failure.exit {
            // That it was asked for is no error.
            Exit::Signal(_) => output::note(&failure),
            _ => output::error(&failure),
        }
        failure.exit
    });
    ExitCode::from(exit.code())
}

/// The README's own examples, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
