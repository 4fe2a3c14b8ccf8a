//! What ran, how it went, and what could not run and why.

use std::time::{Duration, Instant};

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// With what to look at.
    Failed(String),
    /// It could not be done here: with the reason. This alone fails no command.
    NotRun(String),
}

/// The steps of a command.
#[derive(Debug, Default)]
pub(crate) struct Report {
    steps: Vec<(String, Outcome, Duration)>,
}

impl Report {
    /// Runs a step under its name and notes how it went.
    pub(crate) fn step(&mut self, name: &str, step: impl FnOnce() -> Outcome) {
        eprintln!("\n==> {name}");
        let start = Instant::now();
        let outcome = step();
        if let Outcome::Failed(why) | Outcome::NotRun(why) = &outcome {
            eprintln!("{why}");
        }
        self.steps.push((name.to_owned(), outcome, start.elapsed()));
    }

    /// Notes a step that can't be taken here.
    pub(crate) fn not_run(&mut self, name: &str, why: impl Into<String>) {
        self.steps.push((name.to_owned(), Outcome::NotRun(why.into()), Duration::ZERO));
    }

    /// Whether any step failed.
    pub(crate) fn failed(&self) -> bool {
        self.steps.iter().any(|(_, outcome, _)| matches!(outcome, Outcome::Failed(_)))
    }

    /// The table of all steps.
    pub(crate) fn print(&self) {
        let width = self.steps.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        println!();
        for (name, outcome, took) in &self.steps {
            let took = took.as_secs_f64();
            match outcome {
                Outcome::Passed => println!("passed   {name:width$}  {took:6.1} s"),
                Outcome::Failed(why) => println!("FAILED   {name:width$}  {took:6.1} s  {why}"),
                Outcome::NotRun(why) => println!("not run  {name:width$}            {why}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_step_fails_the_command() {
        let mut report = Report::default();
        report.step("good", || Outcome::Passed);
        report.not_run("elsewhere", "no such machine");
        assert!(!report.failed());
        report.step("bad", || Outcome::Failed("look here".into()));
        report.step("good again", || Outcome::Passed);
        assert!(report.failed());
    }
}
