//! The manifest as it is written: every field with its place in the text, nothing checked but its
//! type. A kernel whose fields are not read does not keep the others from it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Error as _, SeqAccess, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::diagnostic::{Diagnostic, closest};

/// The kernels whose fields could be read, and what is wrong with the others.
#[derive(Debug, Default)]
pub(super) struct RawManifest {
    pub(super) kernels: Vec<RawKernel>,
    pub(super) wrong: Vec<Diagnostic>,
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

/// The fields of a kernel, for the suggestion beside an unknown one.
const FIELDS: [&str; 10] = [
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

/// What helps where nothing more is known.
const SEE_HELP: &str = "`grainstore warm --help` shows how a manifest is written";

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

/// Reads the text.
///
/// # Errors
/// What is not TOML, or has anything but kernels: then none of it can be trusted.
pub(super) fn parse(text: &str) -> Result<RawManifest, Diagnostic> {
    let table = DeTable::parse(text).map_err(|error| told(text, &error))?.into_inner();
    let mut raw = RawManifest::default();
    for (field, value) in table {
        if field.get_ref() != "kernel" {
            let message = format!("unknown field `{}`, expected `kernel`", field.get_ref());
            return Err(Diagnostic::at(message, field.span())
                .with_help(suggested(field.get_ref(), ["kernel"])));
        }
        let place = value.span();
        let DeValue::Array(kernels) = value.into_inner() else {
            let help = "write [[kernel]], with two brackets on each side: there may be several";
            return Err(Diagnostic::at("`kernel` is not a list of tables", place).with_help(help));
        };
        for (index, kernel) in kernels.into_iter().enumerate() {
            let name = kernel.get_ref().get("name").and_then(|name| name.get_ref().as_str());
            let name = name.map_or_else(|| format!("#{}", index + 1), ToOwned::to_owned);
            match RawKernel::deserialize(ValueDeserializer::from(kernel)) {
                Ok(kernel) => raw.kernels.push(kernel),
                Err(error) => {
                    let mut wrong = told(text, &error);
                    wrong.set_kernel(&name);
                    raw.wrong.push(wrong);
                }
            }
        }
    }
    Ok(raw)
}

/// The parser's own message, with its place and what to do.
fn told(text: &str, error: &toml::de::Error) -> Diagnostic {
    let message = error.message().trim();
    let written = error.span().and_then(|span| text.get(span)).unwrap_or_default();
    let help = if message.starts_with("unknown field") {
        suggested(written, FIELDS)
    } else if message == "missing field `name`" {
        "give the kernel a name: name = \"NAME\"".to_owned()
    } else if written.contains('\n') {
        SEE_HELP.to_owned()
    } else if message.ends_with("expected a sequence") {
        format!("write a list: [{written}]")
    } else if message.ends_with("expected a string") && !written.contains(['[', '{', '"']) {
        format!("put it between quotes: \"{written}\"")
    } else {
        SEE_HELP.to_owned()
    };
    Diagnostic::new(message, error.span()).with_help(help)
}

fn suggested<'a>(written: &str, fields: impl IntoIterator<Item = &'a str>) -> String {
    match closest(written, fields) {
        Some(field) => format!("did you mean `{field}`?"),
        None => "take it out, or see `grainstore warm --help` for the fields".to_owned(),
    }
}
