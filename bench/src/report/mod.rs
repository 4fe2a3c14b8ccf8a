//! What is printed: the rows, the goals, and both as JSON.

pub mod goals;
pub mod json;
pub mod text;

use serde::Serialize;

use crate::rows::{Entry, Table};

/// All rows of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Results {
    /// In the order in which they ran.
    pub rows: Vec<Table>,
}

impl Results {
    /// The entry of this subject in this row, if both ran.
    #[must_use]
    pub fn entry(&self, row: &str, subject: &str) -> Option<&Entry> {
        let table = self.rows.iter().find(|table| table.row == row)?;
        table.entries.iter().find(|entry| entry.subject == subject)
    }
}
