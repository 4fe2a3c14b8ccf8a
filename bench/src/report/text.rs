//! The tables for people.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table as Grid};

use super::Results;
use super::goals::Goal;
use crate::measure::series::Summary;
use crate::rows::Table;

/// Every row as one table, one line for each subject, with its ratio to the first of them: to ours,
/// where there is one.
#[must_use]
pub fn rows(results: &Results) -> String {
    let mut text = String::new();
    for table in &results.rows {
        text += &format!("{}: {}\n", table.row, table.about);
        match &table.not_run {
            Some(why) => text += &format!("  not run: {why}\n"),
            None => text += &indented(&grid(table)),
        }
        text.push('\n');
    }
    text
}

fn grid(table: &Table) -> Grid {
    let mut grid = plain(&["", table.unit, "p10", "p90", "ratio", "instructions", "rounds"]);
    let first = table.entries.first().map_or(f64::NAN, |entry| entry.summary.median);
    for entry in &table.entries {
        let summary = &entry.summary;
        grid.add_row([
            entry.subject.clone(),
            figure(summary.median),
            figure(summary.p10),
            figure(summary.p90),
            figure(summary.median / first),
            entry.instructions.map_or_else(String::new, figure),
            rounds(summary),
        ]);
    }
    align(&mut grid);
    grid
}

fn rounds(summary: &Summary) -> String {
    let doubt = if summary.trusted { "" } else { " (too noisy: all of them taken)" };
    match summary.dropped {
        0 => summary.rounds.to_string(),
        dropped => format!("{}, {dropped} dropped{doubt}", summary.rounds),
    }
}

/// The goals, one a line.
#[must_use]
pub fn goals(goals: &[Goal]) -> String {
    let mut grid = plain(&["goal", "measured as", "at most", "measured", ""]);
    for goal in goals {
        let verdict = match (goal.met, goal.why_not) {
            (Some(true), _) => "met",
            (Some(false), _) => "NOT MET",
            (None, why) => why.unwrap_or_default(),
        };
        grid.add_row([
            goal.goal.to_owned(),
            goal.measure.clone(),
            figure(goal.limit),
            goal.measured.map_or_else(String::new, figure),
            verdict.to_owned(),
        ]);
    }
    format!("goals\n{}", indented(&grid))
}

fn plain(head: &[&str]) -> Grid {
    let mut grid = Grid::new();
    grid.load_preset(NOTHING).set_header(head.iter().copied());
    grid
}

/// Figures to the right: every column but the first and the last.
fn align(grid: &mut Grid) {
    let last = grid.column_count().saturating_sub(1);
    for (index, column) in grid.column_iter_mut().enumerate() {
        if index > 0 && index < last {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn indented(grid: &Grid) -> String {
    grid.lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}

/// Three digits or so: no more is known.
fn figure(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => "-".into(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_or_so() {
        let shown: Vec<_> = [0.123, 4.5678, 12.345, 123.45, f64::NAN].map(figure).into();
        assert_eq!(shown, ["0.12", "4.57", "12.3", "123", "-"]);
    }
}
