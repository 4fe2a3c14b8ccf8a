//! What to compile: a source and everything that changes what comes of it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::Language;

/// A kernel to compile. Cheap to clone; hashed once, not per call.
#[derive(Clone, Debug)]
pub struct KernelSpec {
    inner: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    name: String,
    language: Language,
    source: Arc<[u8]>,
    entry: Option<String>,
    headers: Vec<(String, Arc<[u8]>)>,
    defines: Vec<(String, String)>,
    options: Vec<String>,
    constants: Vec<(String, String)>,
}

impl KernelSpec {
    /// Starts a spec: a name for people, and the language of its source.
    pub fn builder(name: impl Into<String>, language: Language) -> KernelSpecBuilder {
        KernelSpecBuilder {
            parts: Parts {
                name: name.into(),
                language,
                source: Arc::from([]),
                entry: None,
                headers: Vec::new(),
                defines: Vec::new(),
                options: Vec::new(),
                constants: Vec::new(),
            },
        }
    }

    /// Its name, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The language of its source.
    #[must_use]
    pub fn language(&self) -> Language {
        self.inner.language
    }

    /// Its source: UTF-8 text, but for SPIR-V.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        &self.inner.source
    }

    /// The entry point; none means a module with all its functions.
    #[must_use]
    pub fn entry(&self) -> Option<&str> {
        self.inner.entry.as_deref()
    }

    /// Headers by the name that `#include` uses, sorted by name.
    #[must_use]
    pub fn headers(&self) -> &[(String, Arc<[u8]>)] {
        &self.inner.headers
    }

    /// Preprocessor definitions, sorted by name.
    #[must_use]
    pub fn defines(&self) -> &[(String, String)] {
        &self.inner.defines
    }

    /// The compiler's options, verbatim and in order.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.inner.options
    }

    /// Specialization constants by name or number, sorted.
    #[must_use]
    pub fn constants(&self) -> &[(String, String)] {
        &self.inner.constants
    }
}

/// Collects the parts of a [`KernelSpec`].
#[derive(Debug)]
#[must_use]
pub struct KernelSpecBuilder {
    parts: Parts,
}

impl KernelSpecBuilder {
    /// The source.
    pub fn source(mut self, source: impl Into<Vec<u8>>) -> Self {
        self.parts.source = source.into().into();
        self
    }

    /// The entry point.
    pub fn entry(mut self, entry: impl Into<String>) -> Self {
        self.parts.entry = Some(entry.into());
        self
    }

    /// A header, by the name that `#include` uses.
    pub fn header(mut self, name: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        self.parts.headers.push((name.into(), content.into().into()));
        self
    }

    /// A preprocessor definition.
    pub fn define(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parts.defines.push((name.into(), value.into()));
        self
    }

    /// One more option for the compiler, verbatim, behind the others.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.parts.options.push(option.into());
        self
    }

    /// A specialization constant, by name or number.
    pub fn constant(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parts.constants.push((name.into(), value.into()));
        self
    }

    /// The spec.
    ///
    /// # Errors
    /// An empty source, or a header, a define or a constant that is named twice.
    pub fn build(mut self) -> Result<KernelSpec, SpecError> {
        let parts = &mut self.parts;
        if parts.source.is_empty() {
            return Err(SpecError {
                message: format!("kernel `{}` has an empty source", parts.name),
            });
        }
        parts.headers.sort_by(|a, b| a.0.cmp(&b.0));
        parts.defines.sort();
        parts.constants.sort();
        let doubles = [
            ("header", parts.headers.windows(2).find(|w| w[0].0 == w[1].0).map(|w| &w[0].0)),
            ("define", parts.defines.windows(2).find(|w| w[0].0 == w[1].0).map(|w| &w[0].0)),
            ("constant", parts.constants.windows(2).find(|w| w[0].0 == w[1].0).map(|w| &w[0].0)),
        ];
        for (kind, double) in doubles {
            if let Some(name) = double {
                return Err(SpecError {
                    message: format!("kernel `{}` has the {kind} `{name}` twice", parts.name),
                });
            }
        }
        Ok(KernelSpec { inner: Arc::new(self.parts) })
    }
}

/// Why a [`KernelSpec`] could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for SpecError {}
