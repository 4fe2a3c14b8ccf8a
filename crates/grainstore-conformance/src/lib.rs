//! One battery of tests for every backend, ours and other people's, run with a single call.

mod report;
mod subject;

pub use report::{Checked, Report, Verdict};
pub use subject::{BoxError, Cannot, Subject};
