//! Runs the checks, one by one, and tells what came of each.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::checks::Entry;
use crate::testing::{REQUIRE, is_required};
use crate::trouble::{Check, Trouble};
use crate::{Subject, Verdict};

pub(crate) fn verdict<S: Subject>(subject: &S, check: &Entry<S>) -> Verdict {
    settle(subject.name(), contained(|| (check.run)(subject)))
}

/// What a check of this subject amounts to.
pub(crate) fn settle(subject: &str, outcome: Check) -> Verdict {
    match outcome {
        Ok(()) => Verdict::Passed,
        Err(Trouble::Cannot(reason)) => Verdict::NotRun(reason),
        Err(Trouble::Absent(reason)) if is_required(subject) => {
            Verdict::Failed(format!("{REQUIRE} says that it must run, but: {reason}"))
        }
        Err(Trouble::Absent(reason)) => Verdict::NotRun(reason),
        Err(Trouble::Failed(reason)) => Verdict::Failed(reason),
    }
}

/// A panic is a failure like any other.
pub(crate) fn contained(check: impl FnOnce() -> Check) -> Check {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("without words");
        Err(Trouble::failed(format!("it panicked: {text}")))
    })
}
