//! `cargo xtask mutants [FILE...]`: the cache broken in every small way there is, one at a time, and
//! whether a test notices. A guarantee whose test can't fail is not held.
//!
//! `.cargo/mutants.toml` says what is broken, and the profile `mutants` of nextest how the tests run.
//! First the tests that are quick run against every mutant, then all tests against those that are
//! left. What is left then has to be explained, line by line, in the table of `docs/testing.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::report::{Outcome, Report};
use crate::{shell, tools};

const CARGO_MUTANTS: &str = "27.1.0";
const CRATE: &str = "crates/grainstore";
const DOCUMENT: &str = "docs/testing.md";
/// Of the mutants that compile, at least so many in a hundred have to be caught.
const LEAST: usize = 95;

/// As the command line says: files of the crate, or nothing for all of them. Nothing if that makes
/// no sense.
pub(crate) fn command(arguments: &[&str]) -> Option<Report> {
    if let Some(option) = arguments.iter().find(|argument| argument.starts_with('-')) {
        eprintln!("`{option}` is no file\nusage: cargo xtask mutants [FILE...]   (default: all)");
        return None;
    }
    let mut report = Report::default();
    run(&mut report, arguments);
    Some(report)
}

/// Of these files of the crate, or of all.
pub(crate) fn run(report: &mut Report, files: &[&str]) {
    const STEP: &str = "mutation testing";
    match tools::cargo_tool("mutants", CARGO_MUTANTS) {
        Err(why) => report.not_run(STEP, why),
        Ok(_) if !shell::succeeds(&mut shell::cargo(&["nextest", "--version"])) => {
            report.not_run(STEP, "cargo-nextest is not installed");
        }
        Ok(tool) => report.step(STEP, || test(&tool, files)),
    }
}

fn test(tool: &Command, files: &[&str]) -> Outcome {
    let folder = shell::target().join("mutants");
    let _ = fs::remove_dir_all(&folder);
    // The quick tests need two programs, and all tests four, which cost as much again to link.
    let mut quick = mutants(tool, &folder, files);
    quick.args(["-C=--lib", "-C=--test=suite"]).env("PROPTEST_CASES", "30");
    let mut every = mutants(tool, &folder, files);
    // Those that were caught are not tried again, nor is it tried whether the tests pass as it is.
    every.args(["--iterate", "--baseline", "skip", "--timeout", "120"]);

    let mut fates = Fates::default();
    for mut command in [quick, every] {
        // It fails if any mutant is left; what it writes down says more.
        let outcome = shell::run(&mut command);
        let path = folder.join("mutants.out/outcomes.json");
        match fs::read_to_string(&path).map(|text| fates.add(&text)) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Outcome::Failed(format!("{}: {why}", path.display())),
            Err(_) if outcome != Outcome::Passed => return outcome,
            Err(_) => {
                let why = "nothing to break there: files are named from the crate's sources, as \
                           `cache/slot.rs`, and `.cargo/mutants.toml` leaves some out";
                return Outcome::Failed(why.to_owned());
            }
        }
        if fates.survivors().next().is_none() {
            break;
        }
    }
    let explained = fs::read_to_string(shell::root().join(DOCUMENT)).unwrap_or_default();
    fates.judge(&explained)
}

/// The tool on these files; the tests run as they are for it.
fn mutants(tool: &Command, folder: &Path, files: &[&str]) -> Command {
    let mut command =
        shell::cargo(&["mutants", "--package", "grainstore", "--no-times", "--output"]);
    if let Some((name, Some(path))) = tool.get_envs().find(|(name, _)| *name == "PATH") {
        command.env(name, path);
    }
    command.arg(folder);
    for file in files {
        command.arg("--file").arg(path_of(file));
    }
    command
        // It builds in copies of the tree, in the build folder of each.
        .env_remove("CARGO_TARGET_DIR")
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_TEST_DEBUG", "0")
        // That a case fails is enough.
        .env("PROPTEST_MAX_SHRINK_ITERS", "0");
    command
}

/// A file by its path from the root, or from the crate's sources.
fn path_of(file: &str) -> PathBuf {
    if file.starts_with(CRATE) { file.into() } else { Path::new(CRATE).join("src").join(file) }
}

/// What became of each mutant.
#[derive(Default)]
struct Fates(BTreeMap<Mutant, Fate>);

/// A mutant: its file, its place in it, and what it breaks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Mutant {
    file: String,
    place: (u32, u32),
    what: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum Fate {
    #[serde(rename = "CaughtMutant")]
    Caught,
    /// The tests came to no end.
    Timeout,
    #[serde(rename = "MissedMutant")]
    Missed,
    Unviable,
    /// Of the tree as it is.
    Success,
    Failure,
}

impl Fates {
    /// Adds what the tool wrote down; what is known of a mutant already is outdated by it.
    fn add(&mut self, text: &str) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Written {
            outcomes: Vec<One>,
        }
        #[derive(Deserialize)]
        struct One {
            scenario: Scenario,
            summary: Fate,
        }
        #[derive(Deserialize)]
        enum Scenario {
            Baseline,
            Mutant { name: String },
        }
        let written: Written = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for One { scenario, summary } in written.outcomes {
            match scenario {
                Scenario::Baseline if summary == Fate::Success => {}
                Scenario::Baseline => return Err("the tests fail as it is".into()),
                Scenario::Mutant { name } => {
                    let mutant = Mutant::read(&name).ok_or_else(|| format!("what is `{name}`?"))?;
                    self.0.insert(mutant, summary);
                }
            }
        }
        Ok(())
    }

    fn survivors(&self) -> impl Iterator<Item = &Mutant> {
        self.0.iter().filter(|(_, fate)| **fate == Fate::Missed).map(|(mutant, _)| mutant)
    }

    /// Prints all of it: a line for each file, then the survivors.
    fn judge(&self, explained: &str) -> Outcome {
        let mut rows: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
        for (mutant, fate) in &self.0 {
            let column = match fate {
                Fate::Caught => 0,
                Fate::Timeout => 1,
                Fate::Missed => 2,
                Fate::Unviable | Fate::Success | Fate::Failure => 3,
            };
            rows.entry(&mutant.file).or_default()[column] += 1;
            rows.entry("all").or_default()[column] += 1;
        }
        println!("\n{:40} caught  timeout  missed  do not compile", "file");
        let total = rows.remove("all").unwrap_or_default();
        for (file, [caught, timeout, missed, unviable]) in rows.into_iter().chain([("all", total)])
        {
            println!("{file:40} {caught:6}  {timeout:7}  {missed:6}  {unviable:14}");
        }
        let mut unexplained = 0;
        for survivor in self.survivors() {
            let known = survivor.is_explained(explained);
            unexplained += usize::from(!known);
            let Mutant { file, place: (line, column), what } = survivor;
            let note = if known { "explained" } else { "NOT EXPLAINED" };
            println!("missed, {note}: {file}:{line}:{column}: {what}");
        }
        let [caught, timeout, missed, _] = total;
        let (caught, viable) = (caught + timeout, caught + timeout + missed);
        println!("{caught} of {viable} mutants caught");
        if caught * 100 < viable * LEAST {
            Outcome::Failed(format!("{caught} of {viable} are less than {LEAST}%"))
        } else if unexplained > 0 {
            Outcome::Failed(format!("{unexplained} survivors are not explained in {DOCUMENT}"))
        } else {
            Outcome::Passed
        }
    }
}

impl Mutant {
    /// From `path/from/the/root.rs:LINE:COLUMN: WHAT`.
    fn read(name: &str) -> Option<Self> {
        let (place, what) = name.split_once(": ")?;
        let mut parts = place.split(':');
        let (file, line, column) = (parts.next()?, parts.next()?, parts.next()?);
        let file = file.strip_prefix(CRATE).and_then(|file| file.strip_prefix("/src/"));
        Some(Self {
            file: file?.to_owned(),
            place: (line.parse().ok()?, column.parse().ok()?),
            what: what.to_owned(),
        })
    }

    /// Whether a line of the table is about it: that names the file and says what is broken. Not the
    /// place, which changes with every edit.
    fn is_explained(&self, document: &str) -> bool {
        let (file, what) = (format!("`{}`", self.file), format!("`{}`", self.what));
        // In a table a bar has a backslash before it.
        let rows = document.lines().filter(|line| line.starts_with('|'));
        rows.map(|row| row.replace(r"\|", "|"))
            .any(|row| row.contains(&file) && row.contains(&what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(summaries: [&str; 3]) -> String {
        let one = |line: usize, summary: &str| {
            let name = format!("crates/grainstore/src/a/b.rs:{line}:9: replace f -> u8 with 1");
            format!(r#"{{"scenario": {{"Mutant": {{"name": "{name}"}}}}, "summary": "{summary}"}}"#)
        };
        let all: Vec<_> =
            summaries.iter().enumerate().map(|(line, what)| one(line, what)).collect();
        let baseline = r#"{"scenario": "Baseline", "summary": "Success"}"#;
        format!(r#"{{"outcomes": [{baseline}, {}]}}"#, all.join(", "))
    }

    #[test]
    fn a_survivor_has_to_be_explained_and_there_may_be_few() {
        let mut fates = Fates::default();
        fates.add(&written(["CaughtMutant", "MissedMutant", "Unviable"])).unwrap();
        assert!(
            matches!(fates.judge(""), Outcome::Failed(why) if why == "1 of 2 are less than 95%")
        );
        // What a later run says counts.
        fates.add(&written(["CaughtMutant", "CaughtMutant", "Unviable"])).unwrap();
        assert_eq!(fates.judge(""), Outcome::Passed);

        let mutant = "crates/grainstore/src/a.rs:1:2: replace || with && in f";
        let mutant = Mutant::read(mutant).unwrap();
        for other in 3..40 {
            let place = (other, 1);
            fates.0.insert(Mutant { place, ..mutant.clone() }, Fate::Caught);
        }
        fates.0.insert(mutant, Fate::Missed);
        assert!(matches!(fates.judge(""), Outcome::Failed(why) if why.contains("not explained")));
        let row = r"| `a.rs` | `replace \|\| with && in f` | why |";
        assert_eq!(fates.judge(row), Outcome::Passed);
        let elsewhere = fates.judge(&row.replace("a.rs", "b.rs"));
        assert!(matches!(elsewhere, Outcome::Failed(_)));
    }

    #[test]
    fn what_can_not_be_read_is_told() {
        let mut fates = Fates::default();
        assert!(fates.add("{}").is_err());
        let broken = r#"{"outcomes": [{"scenario": "Baseline", "summary": "Failure"}]}"#;
        assert_eq!(fates.add(broken), Err("the tests fail as it is".into()));
    }
}
