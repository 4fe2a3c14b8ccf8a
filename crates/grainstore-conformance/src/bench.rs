//! For a backend's own benches of what only new processes show: how soon one has the kernels that an
//! earlier one compiled.
//!
//! A bench is one program. [`measure`] starts it again for one kind of thing, and there [`serve`] does
//! that. A failure is a panic, as in tests.

use std::env;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Say to a new process what it is to measure, and where its files are.
const KIND: &str = "GRAINSTORE_BENCH_KIND";
const FOLDER: &str = "GRAINSTORE_BENCH_FOLDER";

/// How the line begins in which a new process says how long it took.
const TOOK: &str = "took ";

/// Does what [`measure`] started this process for, and says how long it took; false where nobody did.
/// The kind and the folder are those that were given to it.
pub fn serve(take: impl FnOnce(&str, &Path) -> Duration) -> bool {
    let (Ok(kind), Some(folder)) = (env::var(KIND), env::var_os(FOLDER)) else { return false };
    println!("{TOOK}{}", take(&kind, Path::new(&folder)).as_nanos());
    true
}

/// How long this kind takes in a new process, in milliseconds. `prepare` sets its variables.
///
/// # Panics
/// Where it fails there, with what it said.
pub fn measure(kind: &str, folder: &Path, prepare: impl FnOnce(&mut Command)) -> f64 {
    let program = env::current_exe().unwrap_or_else(|error| panic!("this program: {error}"));
    let mut command = Command::new(program);
    command.env(KIND, kind).env(FOLDER, folder);
    prepare(&mut command);
    let output = command.output().unwrap_or_else(|error| panic!("starting {kind}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let took = text.lines().find_map(|line| line.strip_prefix(TOOK)).map(str::parse::<f64>);
    let Some(Ok(nanoseconds)) = took else {
        panic!("{kind} failed:\n{text}{}", String::from_utf8_lossy(&output.stderr));
    };
    nanoseconds / 1e6
}

/// The times of one kind, in milliseconds. As text it is a line below [`HEAD`](Self::HEAD).
#[derive(Clone, Debug)]
pub struct Figures {
    name: &'static str,
    /// Sorted.
    times: Vec<f64>,
}

impl Figures {
    /// The line above those of the figures.
    pub const HEAD: &'static str =
        "milliseconds                                       median      least       most";

    /// None yet.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, times: Vec::new() }
    }

    /// One more.
    pub fn add(&mut self, time: f64) {
        let place = self.times.partition_point(|known| *known < time);
        self.times.insert(place, time);
    }

    /// The one in the middle; without any, no number.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.times.get(self.times.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |time: Option<&f64>| time.copied().unwrap_or(f64::NAN);
        let (least, most) = (end(self.times.first()), end(self.times.last()));
        write!(f, "{:<46} {:10.3} {least:10.3} {most:10.3}", self.name, self.median())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_columns() {
        let mut figures = Figures::new("warm");
        for time in [3.0, 1.0, 250.0] {
            figures.add(time);
        }
        assert_eq!(figures.median(), 3.0);
        let line = figures.to_string();
        assert!(
            line.starts_with("warm ") && line.ends_with(" 3.000      1.000    250.000"),
            "{line}"
        );
        assert_eq!(line.len(), Figures::HEAD.len());
        assert!(Figures::new("none").median().is_nan());
    }
}
