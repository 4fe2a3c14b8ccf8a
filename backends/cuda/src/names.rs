//! The kernels of a module by the names that its code has for them.
//!
//! C++ mangles names, and an entry point such as `scale<float, 4>` is an expression. What it became
//! is known only while it is compiled, so it is kept with the code.

use std::fmt;

/// What is known of a module's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// The spec's entry point, and its name in the code.
    pub(crate) entry: Option<(String, String)>,
    /// The names in the code of all kernels, sorted; empty where they are not known.
    pub(crate) kernels: Vec<String>,
}

impl Names {
    /// Those of PTX.
    pub(crate) fn of_ptx(ptx: &str) -> Self {
        Self { entry: None, kernels: kernels_of_ptx(ptx) }
    }

    /// The name in the code of what is called `name` here: the entry point as it was written, or a
    /// name that is one already. None if the module surely has no such kernel.
    pub(crate) fn in_code<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match &self.entry {
            Some((expression, lowered)) if expression == name => Some(lowered),
            _ if self.kernels.is_empty() => Some(name),
            _ => self.kernels.iter().find(|kernel| *kernel == name).map(String::as_str),
        }
    }

    /// What [`Display`](fmt::Display) wrote. A line that says nothing known is not one of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut names = Self::default();
        for line in text.lines() {
            match line.split_once(' ')? {
                ("kernel", name) => names.kernels.push(name.to_owned()),
                ("entry", both) => {
                    // A name in the code has no spaces, and an expression may.
                    let (lowered, expression) = both.split_once(' ')?;
                    names.entry = Some((expression.to_owned(), lowered.to_owned()));
                }
                _ => return None,
            }
        }
        Some(names)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((expression, lowered)) = &self.entry {
            writeln!(f, "entry {lowered} {expression}")?;
        }
        self.kernels.iter().try_for_each(|kernel| writeln!(f, "kernel {kernel}"))
    }
}

/// The names behind `.entry`, wherever comments leave one.
fn kernels_of_ptx(ptx: &str) -> Vec<String> {
    let mut kernels = Vec::new();
    let text = without_comments(ptx);
    for (at, word) in text.match_indices(".entry") {
        let rest = &text[at + word.len()..];
        let name = rest.trim_start();
        // Else it is the beginning of some longer word.
        if name.len() < rest.len() {
            let end = name.find(|c: char| !is_part_of_name(c)).unwrap_or(name.len());
            kernels.extend((end > 0).then(|| name[..end].to_owned()));
        }
    }
    kernels.sort_unstable();
    kernels.dedup();
    kernels
}

fn is_part_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_$%".contains(c)
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        rest = if from.starts_with("//") {
            from.find('\n').map_or("", |end| &from[end..])
        } else if from.starts_with("/*") {
            kept.push(' ');
            from.find("*/").map_or("", |end| &from[end + 2..])
        } else {
            kept.push('/');
            &from[1..]
        };
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_read_from_ptx() {
        let ptx = ".version 8.0\n// .entry no\n/* .entry\nneither */.func helper()\n\
                   .visible .entry b(\n.param .u64 x)\n.entry _Z1a\n(.param .u32 b_/c)\n\
                   .weak .entry plain\n{ret;}.entry b.maxntid 1 .entry_not c";
        assert_eq!(kernels_of_ptx(ptx), ["_Z1a", "b", "plain"]);
        assert!(kernels_of_ptx("").is_empty() && kernels_of_ptx("/").is_empty());
    }

    #[test]
    fn names_are_written_and_read_back() {
        let names = Names {
            entry: Some(("scale<float, 4>".into(), "_Z5scale".into())),
            kernels: vec!["_Z5scale".into(), "other".into()],
        };
        assert_eq!(Names::parse(&names.to_string()), Some(names.clone()));
        assert_eq!(Names::parse(""), Some(Names::default()));
        for broken in ["kernel", "entry a", "else x", "\n"] {
            assert_eq!(Names::parse(broken), None, "{broken:?}");
        }
        assert_eq!(names.in_code("scale<float, 4>"), Some("_Z5scale"));
        assert_eq!(names.in_code("other"), Some("other"));
        assert_eq!(names.in_code("none"), None);
        assert_eq!(Names::default().in_code("anything"), Some("anything"));
    }
}
