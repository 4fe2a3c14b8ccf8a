//! What is said on standard error while the work goes on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::plan::{Job, Skip};
use super::report::{Outcome, Row};
use crate::output::{self, Progress, YELLOW, human};

/// One line for what was compiled, the whole log for what failed, nothing for what was there.
pub(super) fn tell(progress: &Progress, job: &Job, row: &Row) {
    let name = title(&row.name, &row.variant);
    match &row.error {
        Some(error) => {
            progress.aside(|| {
                output::error(format!("{name} on {}: {}", job.place, error.trim_end()));
                if let Some(help) = advice(error) {
                    output::note(format!("  = help: {help}"));
                }
            });
            progress.passed();
        }
        None if row.outcome == Outcome::Compiled => {
            let took = human(Duration::from_secs_f64(row.ms / 1e3));
            progress.done(format!("compiled {name} for {} in {took}", job.backend));
        }
        None => progress.passed(),
    }
}

/// What to do about a compiler's log, where its own words lead a manifest's writer nowhere: the file
/// may well lie beside the source.
fn advice(log: &str) -> Option<&'static str> {
    let header = log.lines().any(|line| {
        line.contains("fatal error:")
            && (line.ends_with("No such file or directory") || line.ends_with("file not found"))
    });
    header.then_some(
        "name the file in the kernel's `headers`, as #include does: it is part of the key then",
    )
}

fn title(name: &str, variant: &str) -> String {
    if variant.is_empty() { name.to_owned() } else { format!("{name} [{variant}]") }
}

/// What is left out, by reason.
pub(super) fn tell_skipped(skipped: &[Skip]) {
    let mut rest = skipped;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|skip| skip.reason == first.reason).count();
        let names: Vec<_> = rest[..same].iter().map(|skip| skip.kernel.as_str()).collect();
        output::note(format!("{YELLOW}skipped{YELLOW:#} {}: {}", names.join(", "), first.reason));
        rest = &rest[same..];
    }
}

/// What went wrong without stopping anything, kept until the thread that writes comes by.
#[derive(Clone, Default)]
pub(super) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    pub(super) fn note(&self, warning: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    pub(super) fn tell(&self, progress: &Progress) {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for warning in noted {
            progress.aside(|| output::warn(&warning));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_not_found_brings_advice_and_other_errors_do_not() {
        for log in [
            "k.c:1:10: fatal error: n.h: No such file or directory\ncompilation terminated.",
            "k.c:1:10: fatal error: 'n.h' file not found",
        ] {
            assert!(advice(log).is_some_and(|help| help.contains("`headers`")), "{log}");
        }
        assert_eq!(advice("k.c:1:5: error: 'y' undeclared"), None);
    }
}
