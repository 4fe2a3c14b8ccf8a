//! What people and scripts read: data on standard output, everything else on standard error.
//!
//! Colors are for terminals, and not where `NO_COLOR` is set.

mod progress;
mod table;

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::exit::Failure;

pub(crate) use progress::Progress;
pub(crate) use table::{Align, Table};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// Writes data. A reader that has gone away (`| head`) is no failure.
pub(crate) fn print(data: impl Display) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match write!(out, "{data}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::environment(format!("standard output can't be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one JSON object, indented, with a newline behind it.
pub(crate) fn print_json(object: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(object)
        .map_err(|error| Failure::environment(format!("the figures have no JSON: {error}")))?;
    print(format!("{text}\n"))
}

/// A line on standard error; where that is closed there is nobody to tell.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// A line for what is not as it should be, and does not stop the command.
pub(crate) fn warn(line: impl Display) {
    note(format!("{YELLOW}warning{YELLOW:#}: {line}"));
}

/// A line for what failed.
pub(crate) fn error(line: impl Display) {
    note(format!("{RED}error{RED:#}: {line}"));
}

/// How many there are, and of what: in the singular for one.
pub(crate) fn counted(number: impl TryInto<u64>, one: &str, many: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A duration with the three digits that matter to a reader.
pub(crate) fn human(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        s => format!("{:.1} ms", s * 1e3),
    }
}

/// A duration in milliseconds, to the microsecond, as JSON gives it.
pub(crate) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_none_is_not() {
        let shown = [0, 1, 2].map(|number: usize| counted(number, "file is", "files are"));
        assert_eq!(shown, ["0 files are", "1 file is", "2 files are"]);
    }

    #[test]
    fn durations_read_well() {
        let shown = [0, 40, 1_234, 99_900, 100_000, 1_500_000, 12_345_678, 123_456_789]
            .map(|micros| human(Duration::from_micros(micros)));
        let expected =
            ["0.0 ms", "0.0 ms", "1.2 ms", "99.9 ms", "100 ms", "1.50 s", "12.3 s", "123 s"];
        assert_eq!(shown, expected);
        assert_eq!(millis(Duration::from_nanos(1_234_567)), 1.235);
    }
}
