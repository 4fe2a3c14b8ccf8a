//! The manifest as it is written: every field with its place in the text, nothing checked but its
//! type.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Error as _, SeqAccess, Visitor};
use toml::Spanned;

use super::diagnostic::{Diagnostic, closest};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawManifest {
    #[serde(default)]
    pub(super) kernel: Vec<RawKernel>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKernel {
    pub(super) name: Spanned<String>,
    pub(super) source: Option<Spanned<String>>,
    pub(super) sources: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) language: Option<Spanned<String>>,
    pub(super) entry: Option<Spanned<String>>,
    pub(super) backends: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    pub(super) headers: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) options: Vec<String>,
    #[serde(default)]
    pub(super) options_for: BTreeMap<Spanned<String>, Vec<String>>,
    #[serde(default)]
    pub(super) defines: BTreeMap<Spanned<String>, Spanned<RawDefine>>,
}

/// The fields of a manifest and of a kernel in it, for the suggestion beside an unknown one.
const FIELDS: [&str; 11] = [
    "kernel",
    "name",
    "source",
    "sources",
    "language",
    "entry",
    "backends",
    "headers",
    "options",
    "options_for",
    "defines",
];

/// The value of a define: one, or a list of them that makes a matrix.
#[derive(Debug)]
pub(super) enum RawDefine {
    One(String),
    Each(Vec<String>),
}

impl<'de> Deserialize<'de> for RawDefine {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DefineVisitor)
    }
}

/// A single value inside the list of a matrix, where a further list has no meaning.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(DefineVisitor)? {
            RawDefine::One(value) => Ok(Self(value)),
            RawDefine::Each(_) => Err(D::Error::custom("a list within a list of values")),
        }
    }
}

struct DefineVisitor;

impl<'de> Visitor<'de> for DefineVisitor {
    type Value = RawDefine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, a boolean, or a list of them")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<RawDefine, E> {
        Ok(RawDefine::One(value.to_owned()))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<RawDefine, E> {
        Ok(RawDefine::One(value.to_string()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<RawDefine, E> {
        Ok(RawDefine::One(value.to_string()))
    }

    /// The debug form keeps the point or the exponent, so that a compiler reads a float.
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<RawDefine, E> {
        if value.is_finite() {
            Ok(RawDefine::One(format!("{value:?}")))
        } else {
            Err(E::custom(format!(
                "{value} has no spelling that every compiler reads: write a string, such as \
                 \"INFINITY\""
            )))
        }
    }

    /// A preprocessor has no booleans: `#if` wants 1 and 0.
    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<RawDefine, E> {
        Ok(RawDefine::One(u8::from(value).to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawDefine, A::Error> {
        let mut values = Vec::new();
        while let Some(Scalar(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(RawDefine::Each(values))
    }
}

/// Reads the text; what is not TOML, or not this shape, is told with its place.
pub(super) fn parse(text: &str) -> Result<RawManifest, Diagnostic> {
    toml::from_str(text).map_err(|error| {
        let written = error.span().and_then(|span| text.get(span)).unwrap_or_default();
        let mut diagnostic = Diagnostic::new(error.message().trim(), error.span());
        if error.message().starts_with("unknown field") {
            diagnostic = diagnostic.with_help(match closest(written, FIELDS) {
                Some(field) => format!("did you mean `{field}`?"),
                None => "take it out, or see `grainstore warm --help` for the fields".to_owned(),
            });
        }
        diagnostic
    })
}
