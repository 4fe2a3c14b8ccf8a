//! Tests that passed without doing their work, since this machine does not let them. Each says so on a
//! line of its own, `not run: TEST: REASON`; the test runner keeps what they said in a file.

use std::fs;
use std::path::PathBuf;

use crate::shell;

const MARK: &str = "not run: ";

/// Forgets the last run, so that one that does not come about is not taken for the one before.
pub(crate) fn forget() {
    let _ = fs::remove_file(file());
}

/// Test and reason, for each that the last run of cargo-nextest met.
pub(crate) fn of_last_run() -> Vec<(String, String)> {
    fs::read_to_string(file()).map_or_else(|_| Vec::new(), |text| marked(&text))
}

/// Cargo-nextest keeps it here wherever cargo builds.
fn file() -> PathBuf {
    shell::root().join("target/nextest/default/junit.xml")
}

/// Test and reason of every marked line in this text.
pub(crate) fn marked(text: &str) -> Vec<(String, String)> {
    let said = text.lines().filter_map(|line| line.split_once(MARK));
    let mut found: Vec<_> = said
        .map(|(_, said)| {
            let said = plain(said.split_once("</system").map_or(said, |(said, _)| said));
            match said.split_once(": ") {
                Some((test, why)) => (test.to_owned(), why.to_owned()),
                None => ("a test".to_owned(), said),
            }
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Text as it was before it went into the XML file.
fn plain(text: &str) -> String {
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ]
    .into_iter()
    .fold(text.trim().to_owned(), |text, (code, letter)| text.replace(code, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_found_once_and_as_it_was_said() {
        let file = "<system-err>not run: mounts: &lt;no&gt; &amp;amp; right</system-err>\n\
                    running 1 test\nnot run: mounts: &lt;no&gt; &amp;amp; right\n\
                    not run: just so\n<system-out>fine</system-out>\n";
        let expected = [("a test", "just so"), ("mounts", "<no> &amp; right")]
            .map(|(a, b)| (a.into(), b.into()));
        assert_eq!(marked(file), expected);
    }
}
