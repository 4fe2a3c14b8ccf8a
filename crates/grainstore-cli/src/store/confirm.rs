//! Asking before something is deleted.

use std::io::{IsTerminal, stderr, stdin};

use crate::exit::Failure;
use crate::output;

/// Whether to go on: `--yes` says so, a terminal is asked, and elsewhere it is an error.
pub(super) fn confirm(yes: bool, what: &str) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return Err(Failure::usage(format!("{what}: say --yes, since there is nobody to ask")));
    }
    output::note(format!("{what}. Go on? [y/N]"));
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    let is_yes = ["y", "yes"].contains(&answer.trim().to_lowercase().as_str());
    if read.is_err() || !is_yes {
        output::note("nothing was deleted");
        return Ok(false);
    }
    Ok(true)
}
