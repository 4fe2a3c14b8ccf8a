//! The project's own commands: `cargo xtask check`, `test`, `prove`, `soak` and others.
//!
//! A command is a file of its own: it runs steps, notes how each went in a [`report::Report`], and
//! the report is printed at the end. What could not run is listed with the reason.

mod bench;
mod check;
mod doctor;
mod gpu_check;
mod guarantees;
mod mutants;
mod not_run;
mod nvrtc;
mod packages;
mod prove;
mod report;
mod shell;
mod soak;
mod test;
mod tools;
mod torture;
mod tree;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  check   format, lints, documentation, licences, unused dependencies, the look of the tree, and
          that the guarantees name tests that are there
  test    installs what the tests need and this machine lacks, where it can, and runs all of them
  prove   the cache under tools that try its interleavings: model checkers, sanitizers, fuzzing;
          with `--mutants`, also the next
  mutants the cache broken in every small way, and whether a test notices; of all files or of those
          that are named; takes hours
  torture processes that are killed over and over while they use one store; `--minutes N`
  soak    launches that are checked while everything under them is torn down, on every backend that
          works here; `--minutes N`
  gpu-check
          on a machine with an NVIDIA GPU: what the others can't tell, of CUDA and Vulkan; with
          `--pack FOLDER`, makes a folder of programs that do it where there is no Rust
  bench   our cache beside its peers; `cargo xtask bench --help` lists what it can be asked for";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let report = match arguments.as_slice() {
        ["check"] => check::run(),
        ["test"] => test::run(),
        ["prove"] => prove::run(false),
        ["prove", "--mutants"] => prove::run(true),
        ["mutants", files @ ..] => match mutants::command(files) {
            Some(report) => report,
            None => return ExitCode::from(2),
        },
        ["torture", rest @ ..] => match torture::command(rest) {
            Some(report) => report,
            None => return ExitCode::from(2),
        },
        ["soak", rest @ ..] => match soak::command(rest) {
            Some(report) => report,
            None => return ExitCode::from(2),
        },
        ["gpu-check", rest @ ..] => match gpu_check::command(rest) {
            Some(report) => report,
            None => return ExitCode::from(2),
        },
        ["bench", rest @ ..] => return bench::run(rest),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    report.print();
    if report.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
