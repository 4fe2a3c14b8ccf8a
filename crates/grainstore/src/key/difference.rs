//! In which fields two keys differ, in words: the answer to "why did this miss?".

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// A field of a key as text: its name, unique within the key, and its value.
pub(super) type Field<'a> = (Cow<'a, str>, Cow<'a, str>);

/// One field in which two keys differ.
///
/// Displays as `toolchain: gcc 12.2.0 -> gcc 13.1.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The field's name, such as `target` or `define BLOCK`.
    pub field: String,
    /// Its value in the first key; none where that key has no such field.
    pub this: Option<String>,
    /// Its value in the second key; none where that key has no such field.
    pub other: Option<String>,
}

impl Difference {
    /// What differs between two keys that are given as fields, by [`KernelKey::fields`] or from
    /// where they were stored.
    ///
    /// Fields are matched by name, so their order does not matter; each name stands once.
    ///
    /// [`KernelKey::fields`]: crate::KernelKey::fields
    #[must_use]
    pub fn between<N1, V1, N2, V2>(
        this: impl IntoIterator<Item = (N1, V1)>,
        other: impl IntoIterator<Item = (N2, V2)>,
    ) -> Vec<Self>
    where
        N1: AsRef<str>,
        V1: AsRef<str>,
        N2: AsRef<str>,
        V2: AsRef<str>,
    {
        let other: Vec<_> = other.into_iter().collect();
        let mut unmatched: HashMap<&str, &str> =
            other.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
        let mut differences = Vec::new();
        for (name, value) in this {
            let (name, value) = (name.as_ref(), value.as_ref());
            let counterpart = unmatched.remove(name);
            if counterpart != Some(value) {
                differences.push(Self::new(name, Some(value), counterpart));
            }
        }
        // The fields that only the other has follow in their own order, not in the map's.
        for (name, _) in &other {
            if let Some(value) = unmatched.remove(name.as_ref()) {
                differences.push(Self::new(name.as_ref(), None, Some(value)));
            }
        }
        differences
    }

    fn new(field: &str, this: Option<&str>, other: Option<&str>) -> Self {
        Self {
            field: field.to_owned(),
            this: this.map(str::to_owned),
            other: other.map(str::to_owned),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} -> {}",
            self.field,
            words(self.this.as_deref()),
            words(self.other.as_deref())
        )
    }
}

fn words(value: Option<&str>) -> &str {
    match value {
        None => "(none)",
        Some("") => "(empty)",
        Some(value) => value,
    }
}

/// A list as one text that a person can read and no other list has: separated by spaces, with
/// quotes around what would not stand alone.
pub(super) fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for item in items {
        if !text.is_empty() {
            text.push(' ');
        }
        let plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\');
        if !item.is_empty() && item.chars().all(plain) {
            text.push_str(item);
            continue;
        }
        text.push('"');
        for c in item.chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                '\n' => text.push_str("\\n"),
                c => text.push(c),
            }
        }
        text.push('"');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(this: &[(&str, &str)], other: &[(&str, &str)]) -> Vec<String> {
        Difference::between(this.iter().copied(), other.iter().copied())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn k6_changed_missing_and_added_fields_in_words() {
        let this = [("a", "1"), ("b", "2"), ("c", ""), ("d", "4")];
        let other = [("f", "6"), ("d", "4"), ("c", "3"), ("a", "x"), ("e", "5")];
        assert_eq!(
            shown(&this, &other),
            ["a: 1 -> x", "b: 2 -> (none)", "c: (empty) -> 3", "f: (none) -> 6", "e: (none) -> 5"]
        );
    }

    #[test]
    fn k6_equal_fields_in_another_order_do_not_differ() {
        assert!(shown(&[("a", "1"), ("b", "2")], &[("b", "2"), ("a", "1")]).is_empty());
    }

    #[test]
    fn lists_are_told_apart() {
        assert_eq!(list(["-O3", "-g"]), "-O3 -g");
        let lists: [&[&str]; 9] = [
            &[],
            &[""],
            &["", ""],
            &["a b"],
            &["a", "b"],
            &["\"a", "b\""],
            &["\"a b\""],
            &["a\nb"],
            &["a\\nb"],
        ];
        for (i, one) in lists.iter().enumerate() {
            for other in &lists[i + 1..] {
                assert_ne!(list(one.iter().copied()), list(other.iter().copied()));
            }
        }
    }
}
