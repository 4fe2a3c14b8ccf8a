//! The look of the tree: files that can be read in one go, and nothing left for later in silence.

use std::fs;

use crate::report::Outcome;
use crate::shell;

/// A file longer than this holds more than one idea.
const MOST_LINES: usize = 700;

/// What marks unfinished work. In halves, so that this file is none itself.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Looks at every source and text file that git knows, or would know if it were added.
pub(crate) fn check() -> Outcome {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let Some(files) = shell::output(shell::program("git").args(arguments)) else {
        return Outcome::NotRun("this is no git repository, or git is not installed".into());
    };
    let mut wrong = Vec::new();
    for name in files.lines().filter(|name| is_ours(name)) {
        // A file that is deleted and not committed yet is listed and can't be read.
        if let Ok(text) = fs::read_to_string(shell::root().join(name)) {
            wrong.extend(complaints(name, &text));
        }
    }
    if wrong.is_empty() { Outcome::Passed } else { Outcome::Failed(wrong.join("\n")) }
}

fn is_ours(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("rs" | "c" | "cl" | "h" | "toml" | "md"))
}

fn complaints(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    // One finds one's way in a page by its headings, however long it is.
    if lines > MOST_LINES && !name.ends_with(".md") {
        found.push(format!("{name}: {lines} lines, more than {MOST_LINES}: split it"));
    }
    for (index, line) in text.lines().enumerate() {
        if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
            found.push(format!("{name}:{}: {mark}: do it now, or take it out", index + 1));
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|letter: char| !letter.is_alphanumeric()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_unfinished_work_are_told_with_their_place() {
        let long = "x\n".repeat(MOST_LINES + 1);
        assert_eq!(complaints("a.rs", &long).len(), 1);
        assert!(complaints("a.rs", &"x\n".repeat(MOST_LINES)).is_empty());
        assert!(complaints("a.md", &long).is_empty());
        let marked = format!("fine\n// {}: later\n", MARKS[0]);
        assert!(complaints("a.rs", &marked)[0].starts_with("a.rs:2: "));
        assert!(complaints("a.rs", &format!("{}S are words too\n", MARKS[0])).is_empty());
    }
}
