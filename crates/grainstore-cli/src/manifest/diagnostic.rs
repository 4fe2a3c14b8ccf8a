//! What is wrong with a manifest, shown as a compiler would: place, line, mark, and what to do.

use std::error::Error;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::output::RED;

/// One thing that is wrong, and where in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    message: String,
    span: Option<Range<usize>>,
    help: Option<String>,
    /// The kernel that it is about, if it is about one.
    kernel: Option<String>,
}

impl Diagnostic {
    pub(super) fn new(message: impl Into<String>, span: Option<Range<usize>>) -> Self {
        Self { message: message.into(), span, help: None, kernel: None }
    }

    pub(super) fn at(message: impl Into<String>, span: Range<usize>) -> Self {
        Self::new(message, Some(span))
    }

    /// Where it begins, for the order of the text; what has no place comes first.
    pub(super) fn start(&self) -> usize {
        self.span.as_ref().map_or(0, |span| span.start)
    }

    pub(super) fn set_kernel(&mut self, name: &str) {
        self.kernel = Some(name.to_owned());
    }

    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A manifest that can't be used, with everything that is wrong with it.
#[derive(Debug)]
pub(crate) struct ManifestError {
    path: PathBuf,
    text: String,
    diagnostics: Vec<Diagnostic>,
}

impl ManifestError {
    pub(super) fn new(path: PathBuf, text: String, diagnostics: Vec<Diagnostic>) -> Self {
        Self { path, text, diagnostics }
    }

    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let diagnostic = if error.kind() == io::ErrorKind::NotFound {
            Diagnostic::new("there is no such manifest", None)
                .with_help(format!("name a {} or the folder that holds one", super::FILE_NAME))
        } else {
            let help = match error.kind() {
                io::ErrorKind::InvalidData => "save it as UTF-8 text",
                _ => "name a file that this user may read",
            };
            Diagnostic::new(format!("the manifest can't be read: {error}"), None).with_help(help)
        };
        Self::new(path.to_owned(), String::new(), vec![diagnostic])
    }

    /// The kernels that it is about, each with all that is wrong with it.
    pub(crate) fn kernels(&self) -> Vec<(&str, String)> {
        let mut kernels: Vec<(&str, String)> = Vec::new();
        for diagnostic in &self.diagnostics {
            let Some(name) = diagnostic.kernel.as_deref() else { continue };
            let line = format!("{}: {}", self.place(diagnostic), diagnostic.message);
            match kernels.last_mut().filter(|(last, _)| *last == name) {
                Some((_, lines)) => *lines = format!("{lines}\n{line}"),
                None => kernels.push((name, line)),
            }
        }
        kernels
    }

    /// `path:line:column`, as far as there are such.
    fn place(&self, diagnostic: &Diagnostic) -> String {
        let path = self.path.display();
        match &diagnostic.span {
            Some(span) => {
                let mark = Mark::of(&self.text, span);
                format!("{path}:{}:{}", mark.line, mark.column)
            }
            None => path.to_string(),
        }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            if index > 0 {
                // The first one's is written by whoever shows the error.
                write!(f, "\n{RED}error{RED:#}: ")?;
            }
            write!(f, "{}: {}", self.place(diagnostic), diagnostic.message)?;
            let mut gutter = " ".to_owned();
            if let Some(span) = &diagnostic.span {
                let mark = Mark::of(&self.text, span);
                gutter = " ".repeat(mark.line.to_string().len());
                write!(f, "\n{gutter} |\n{} | {}", mark.line, mark.source)?;
                write!(f, "\n{gutter} | {}{}", mark.indent, "^".repeat(mark.width))?;
            }
            if let Some(help) = &diagnostic.help {
                write!(f, "\n{gutter} = help: {help}")?;
            }
        }
        Ok(())
    }
}

impl Error for ManifestError {}

/// A span as people see it: lines and columns count from 1, a column is a character.
struct Mark<'a> {
    line: usize,
    column: usize,
    source: &'a str,
    /// White space as wide as what stands before the mark, tabs kept.
    indent: String,
    width: usize,
}

impl<'a> Mark<'a> {
    fn of(text: &'a str, span: &Range<usize>) -> Self {
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end).max(start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let lead = &text[line_start..start];
        Self {
            line: before.matches('\n').count() + 1,
            column: lead.chars().count() + 1,
            source: text[line_start..line_end].trim_end(),
            indent: lead.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect(),
            width: text[start..end.min(line_end)].chars().count().max(1),
        }
    }
}

fn floor_boundary(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

/// The candidate that a mistyped name most likely meant, if one is near enough.
pub(crate) fn closest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(written, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Range<usize>) -> String {
        let diagnostic = Diagnostic::at("it is wrong", span).with_help("write it otherwise");
        ManifestError::new("k.toml".into(), text.into(), vec![diagnostic]).to_string()
    }

    #[test]
    fn a_span_is_marked_where_it_stands() {
        let expected = [
            "k.toml:2:7: it is wrong",
            "  |",
            "2 | \tbé = \"x\"",
            "  | \t     ^^^",
            "  = help: write it otherwise",
        ];
        assert_eq!(shown("a = 1\n\tbé = \"x\"\n", 13..16), expected.join("\n"));
    }

    #[test]
    fn a_span_beyond_the_text_is_marked_at_its_end() {
        assert!(shown("a = [", 90..99).starts_with("k.toml:1:6: it is wrong"));
    }

    #[test]
    fn a_span_over_several_lines_is_marked_on_its_first() {
        let shown = shown("a = [\n1,\n]", 4..10);
        assert!(shown.contains("\n1 | a = [\n  |     ^\n"), "{shown}");
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        assert_eq!(closest("sorce", ["name", "source", "sources"]), Some("source"));
        assert_eq!(closest("opencl", ["c", "opencl-c"]), Some("opencl-c"));
        assert_eq!(closest("zebra", ["name", "source"]), None);
    }
}
