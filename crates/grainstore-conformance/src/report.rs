//! What the battery found, check by check.

use std::fmt;

/// The outcome of a whole battery.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The subject's name.
    pub subject: String,
    /// Every check, in the order of the battery.
    pub checks: Vec<Checked>,
}

/// The outcome of one check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The check's name.
    pub name: &'static str,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The backend does what it should.
    Passed,
    /// It was not run, for this reason.
    NotRun(String),
    /// It does not.
    Failed(String),
}

impl Report {
    /// Whether no check failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failed().next().is_none()
    }

    /// The checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Checked> {
        self.checks.iter().filter(|check| matches!(check.verdict, Verdict::Failed(_)))
    }

    /// The checks that were not run.
    pub fn not_run(&self) -> impl Iterator<Item = &Checked> {
        self.checks.iter().filter(|check| matches!(check.verdict, Verdict::NotRun(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            writeln!(f, "{check}")?;
        }
        let (failed, not_run) = (self.failed().count(), self.not_run().count());
        let passed = self.checks.len() - failed - not_run;
        write!(f, "{}: {passed} passed, {not_run} not run, {failed} failed", self.subject)
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Passed => write!(f, "passed: {}", self.name),
            Verdict::NotRun(reason) => write!(f, "not run: {}: {reason}", self.name),
            Verdict::Failed(reason) => write!(f, "failed: {}: {reason}", self.name),
        }
    }
}
