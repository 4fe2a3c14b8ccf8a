//! The document of guarantees keeps its word: each clause stands in it once, and is held by tests
//! that are there, or says plainly that it is open.
//!
//! A clause is a heading `### B1. Its title`. Tests are named in items, a file's in one:
//!
//! ```text
//! - tests `path/from/the/root.rs`: `one_test`, `another`
//! - tools: reference, stress
//! ```
//!
//! A tool is a heading below `## Tools`. What a tool does by itself may be named like tests, with
//! the tool's name in the place of the word `tests`.

use std::collections::HashMap;
use std::fs;
use std::ops::RangeInclusive;

use crate::report::Outcome;
use crate::shell;

const DOCUMENT: &str = "docs/guarantees.md";

/// Every clause: the letter, and the numbers from the first to the last.
const CLAUSES: [(char, RangeInclusive<u32>); 12] = [
    ('B', 0..=9),
    ('E', 1..=8),
    ('P', 1..=8),
    ('D', 1..=6),
    ('G', 1..=2),
    ('S', 1..=2),
    ('K', 1..=6),
    ('H', 1..=6),
    ('R', 1..=9),
    ('A', 1..=10),
    ('N', 1..=5),
    ('C', 1..=6),
];

/// What a clause says that is not held yet.
const OPEN: &str = "**Open**";

/// Reads the document, and the files that it names.
pub(crate) fn check() -> Outcome {
    let Ok(text) = fs::read_to_string(shell::root().join(DOCUMENT)) else {
        return Outcome::Failed(format!("{DOCUMENT} can't be read"));
    };
    let wrong = complaints(&text, |path| fs::read_to_string(shell::root().join(path)).ok());
    if wrong.is_empty() { Outcome::Passed } else { Outcome::Failed(wrong.join("\n")) }
}

/// A part of the document below one heading, with what it stands on.
struct Part<'t> {
    line: usize,
    title: &'t str,
    is_tool: bool,
    held: bool,
}

/// An item of a list, its lines joined.
struct Item {
    line: usize,
    text: String,
}

fn complaints(document: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let (parts, items) = read_document(document);
    let tools: Vec<_> = parts.iter().filter(|part| part.is_tool).map(|part| part.title).collect();
    let mut tests: HashMap<String, Option<Vec<Test>>> = HashMap::new();
    for item in items {
        let mut complain = |what: String| wrong.push(format!("{DOCUMENT}:{}: {what}", item.line));
        let (word, rest) = item.text.split_once(' ').unwrap_or((&item.text, ""));
        if word == "tools:" {
            for tool in rest.split(", ").filter(|tool| !tools.contains(tool)) {
                complain(format!("`{tool}` is none of the tools: {}", tools.join(", ")));
            }
        } else if let Some((path, names)) = named_tests(rest) {
            if word != "tests" && !tools.contains(&word) {
                complain(format!("`{word}` is neither `tests` nor a tool"));
            }
            let there = tests
                .entry(path.to_owned())
                .or_insert_with(|| read(path).map(|text| tests_in(&text)));
            let Some(there) = there else {
                complain(format!("{path} is not there"));
                continue;
            };
            for name in names {
                match there.iter().find(|test| test.name == name) {
                    None => complain(format!("{path} has no test `{name}`")),
                    Some(test) if test.ignored => complain(format!("`{name}` is ignored")),
                    Some(_) => {}
                }
            }
        } else {
            complain("an item names tests like this: - tests `path.rs`: `name`, `name`".into());
        }
    }
    wrong.extend(wrong_clauses(&parts));
    wrong
}

/// Clauses that are missing, unknown, doubled, or not held by anything.
fn wrong_clauses(parts: &[Part<'_>]) -> Vec<String> {
    let known: Vec<_> = CLAUSES
        .into_iter()
        .flat_map(|(letter, numbers)| numbers.map(move |number| format!("{letter}{number}")))
        .collect();
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for part in parts.iter().filter(|part| !part.is_tool) {
        let place = format!("{DOCUMENT}:{}", part.line);
        let id = part.title.split_once(". ").map_or(part.title, |(id, _)| id).to_owned();
        if !known.contains(&id) {
            wrong.push(format!("{place}: there is no clause `{id}`"));
        } else if seen.contains(&id) {
            wrong.push(format!("{place}: {id} stands here a second time"));
        } else if !part.held {
            wrong.push(format!("{place}: {id} names no test, and does not say {OPEN}"));
        }
        seen.push(id);
    }
    let missing = known.iter().filter(|id| !seen.contains(id));
    wrong.extend(missing.map(|id| format!("{DOCUMENT}: {id} is missing")));
    wrong
}

/// The headings of the third level, and the items that say what holds them.
fn read_document(document: &str) -> (Vec<Part<'_>>, Vec<Item>) {
    let (mut parts, mut items): (Vec<Part<'_>>, Vec<Item>) = (Vec::new(), Vec::new());
    let (mut below_tools, mut in_item) = (false, false);
    for (index, line) in document.lines().enumerate() {
        let number = index + 1;
        let continues = in_item && line.starts_with("  ");
        in_item = continues;
        if let Some(title) = line.strip_prefix("## ") {
            below_tools = title == "Tools";
        } else if let Some(title) = line.strip_prefix("### ") {
            parts.push(Part { line: number, title, is_tool: below_tools, held: false });
        } else if let Some(part) = parts.last_mut() {
            part.held |= line.contains(OPEN);
            if let Some(text) = line.strip_prefix("- ") {
                part.held = true;
                in_item = true;
                items.push(Item { line: number, text: text.trim_end().to_owned() });
            } else if let (true, Some(item)) = (continues, items.last_mut()) {
                item.text = format!("{} {}", item.text, line.trim());
            }
        }
    }
    (parts, items)
}

/// The path and the names of `` `path.rs`: `name`, `name` ``.
fn named_tests(text: &str) -> Option<(&str, Vec<&str>)> {
    let (path, names) = text.strip_prefix('`')?.split_once("`: ")?;
    let names: Option<Vec<_>> = names
        .split(", ")
        .map(|name| name.strip_prefix('`').and_then(|name| name.strip_suffix('`')))
        .collect();
    Some((path, names?))
}

struct Test {
    name: String,
    ignored: bool,
}

/// The functions below a `#[test]`.
fn tests_in(source: &str) -> Vec<Test> {
    let mut found = Vec::new();
    let (mut is_test, mut ignored) = (false, false);
    for line in source.lines().map(str::trim_start) {
        is_test |= line.starts_with("#[test]");
        ignored |= line.starts_with("#[ignore");
        let Some((_, rest)) = line.split_once("fn ").filter(|_| !line.starts_with("//")) else {
            continue;
        };
        if is_test {
            let name = |letter: char| letter.is_alphanumeric() || letter == '_';
            let end = rest.find(|letter| !name(letter)).unwrap_or(rest.len());
            found.push(Test { name: rest[..end].to_owned(), ignored });
        }
        (is_test, ignored) = (false, false);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        #[test]
        #[cfg(unix)]
        fn one() {}
        fn helper() {}
        proptest! {
            #[test]
            fn two(a in 0..9) {}
        }
        #[test]
        #[ignore = \"slow\"]
        fn three() {}";

    fn read(path: &str) -> Option<String> {
        (path == "a/b.rs").then(|| SOURCE.to_owned())
    }

    /// A document in which every clause is held by this.
    fn document(held: &str) -> String {
        let mut text = "## Tools\n\n### dice\n\nMany throws.\n\n## The rest\n".to_owned();
        for (letter, numbers) in CLAUSES {
            for number in numbers {
                text.push_str(&format!("\n### {letter}{number}. Something\n\nWords.\n{held}\n"));
            }
        }
        text
    }

    #[test]
    fn a_document_that_names_what_is_there_is_good() {
        let held = "- tests `a/b.rs`: `one`,\n  `two`\n- dice `a/b.rs`: `two`\n- tools: dice";
        assert_eq!(complaints(&document(held), read), [""; 0]);
        assert_eq!(complaints(&document("**Open**: all of it."), read), [""; 0]);
    }

    #[test]
    fn names_that_are_gone_are_told_with_their_place() {
        let good = document("- tests `a/b.rs`: `one`");
        for (rotten, told) in [
            ("- tests `a/b.rs`: `one`,\n  `gone`", ":12: a/b.rs has no test `gone`"),
            ("- tests `a/b.rs`: `helper`", ":12: a/b.rs has no test `helper`"),
            ("- tests `a/b.rs`: `three`", ":12: `three` is ignored"),
            ("- tests `a/c.rs`: `one`", ":12: a/c.rs is not there"),
            ("- tools: cards", ":12: `cards` is none of the tools: dice"),
            ("- cards `a/b.rs`: `one`", ":12: `cards` is neither `tests` nor a tool"),
            ("- tests: `one`", ":12: an item names tests like this"),
            ("- tests `a/b.rs`: one", ":12: an item names tests like this"),
        ] {
            let text = good.replacen("- tests `a/b.rs`: `one`", rotten, 1);
            let wrong = complaints(&text, read);
            assert!(wrong.len() == 1 && wrong[0].contains(told), "{rotten}: {wrong:?}");
        }
    }

    #[test]
    fn each_clause_stands_there_once_and_is_held() {
        let good = document("- tools: dice");
        for (from, to, told) in [
            ("### B3. ", "### B2. ", "B2 stands here a second time"),
            ("### B3. ", "### B3.1. ", "there is no clause `B3.1`"),
            ("### N5. ", "#### N5. ", "N5 is missing"),
            ("### B0. Something\n\nWords.\n- tools: dice", "### B0. Something", "B0 names no test"),
        ] {
            let wrong = complaints(&good.replacen(from, to, 1), read);
            assert!(wrong.iter().any(|wrong| wrong.contains(told)), "{told}: {wrong:?}");
        }
    }
}
