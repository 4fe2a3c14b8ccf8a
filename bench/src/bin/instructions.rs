//! Counts the instructions of our own hit and compares them with their limits. Built without the
//! peers, it is small enough to be part of the tests.

use std::path::Path;
use std::process::ExitCode;

use grainstore_bench::instructions;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = instructions::serve(&arguments) {
        return code;
    }
    let [limits] = arguments.as_slice() else {
        eprintln!("usage: instructions FILE-OF-LIMITS");
        return ExitCode::from(2);
    };
    match instructions::available().and_then(|()| instructions::guard(Path::new(limits))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
