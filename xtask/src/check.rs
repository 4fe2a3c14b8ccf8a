//! `cargo xtask check`: all that can be said of the code without running it.

use crate::report::{Outcome, Report};
use crate::{guarantees, shell, tools, tree};

/// Versions of the tools for a machine that has none of its own.
const CARGO_DENY: &str = "0.20.2";
const CARGO_MACHETE: &str = "0.9.2";

/// Runs every check, also when an earlier one failed.
pub(crate) fn run() -> Report {
    let mut report = Report::default();
    report.step("lock file", || {
        shell::run(shell::cargo(&["metadata", "--locked", "--format-version", "1"]).stdout(
            // What cargo thinks of the lock file is its exit code and its standard error.
            std::process::Stdio::null(),
        ))
    });
    report.step("format", || shell::run(&mut shell::cargo(&["fmt", "--all", "--check"])));
    report.step("lints", || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--all-features", "--quiet"];
        shell::run(shell::cargo(&arguments).args(["--", "-D", "warnings"]))
    });
    report.step("documentation", || {
        let arguments = ["doc", "--workspace", "--all-features", "--no-deps", "--quiet"];
        shell::run(shell::cargo(&arguments).env("RUSTDOCFLAGS", "-D warnings"))
    });
    report.step("look of the tree", tree::check);
    report.step("guarantees", guarantees::check);
    report
        .step("unused dependencies", || with_tool("machete", CARGO_MACHETE, &["--with-metadata"]));
    report.step("licences and sources", || {
        with_tool("deny", CARGO_DENY, &["--all-features", "check", "licenses", "bans", "sources"])
    });
    report
}

fn with_tool(name: &str, version: &str, arguments: &[&str]) -> Outcome {
    match tools::cargo_tool(name, version) {
        Ok(mut command) => shell::run(command.args(arguments)),
        Err(why) => Outcome::NotRun(why),
    }
}
