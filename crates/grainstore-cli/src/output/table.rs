//! A table of plain text: columns as wide as their widest cell.

use std::fmt;

use super::BOLD;

/// On which side a column's cells stand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows under a head.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(name, align)| (name.to_owned(), align)).collect();
        Self { columns, rows: Vec::new() }
    }

    /// One more row, with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<_> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, (_, align)), width) in cells.zip(&self.columns).zip(widths) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            // Padded by hand: the width of a cell is its characters, whatever the formatter thinks.
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            match align {
                Align::Left => line.extend([cell, &padding]),
                Align::Right => line.extend([&padding, cell]),
            }
        }
        line.trim_end().to_owned()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let widths: Vec<usize> = (0..head.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].as_str());
                cells.chain([head[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        writeln!(f, "{BOLD}{}{BOLD:#}", self.line(head.into_iter(), &widths))?;
        for row in &self.rows {
            writeln!(f, "{}", self.line(row.iter().map(String::as_str), &widths))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("name", Align::Left), ("n", Align::Right)]);
        table.row(["é".into(), "10".into()]);
        table.row(["longer".into(), "7".into()]);
        let shown = anstream::adapter::strip_str(&table.to_string()).to_string();
        assert_eq!(shown, "name     n\né       10\nlonger   7\n");
    }
}
