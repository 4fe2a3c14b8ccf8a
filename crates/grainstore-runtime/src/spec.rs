//! What to compile: a source and everything that changes what comes of it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use grainstore::KernelKey;

use crate::profile::{Profile, ProfileId};
use crate::spec_keys::{Known, SpecKeys};
use crate::{Language, Target};

/// A kernel to compile. Cheap to clone; hashed once, not per call.
///
/// Make it once and ask with the same one: its key is kept in it, for each target and toolchain it
/// was asked for, and its clones share that.
///
/// ```
/// use grainstore_runtime::{KernelSpec, Language};
///
/// let spec = KernelSpec::builder("saxpy", Language::OpenClC)
///     .source("kernel void saxpy(float a, global const float *x, global float *y) {\
///              size_t i = get_global_id(0); y[i] += a * x[i]; }")
///     .entry("saxpy")
///     .define("BLOCK", "128")
///     .option("-cl-fast-relaxed-math")
///     .build()?;
/// assert_eq!(spec.name(), "saxpy");
/// # Ok::<(), grainstore_runtime::SpecError>(())
/// ```
#[derive(Clone)]
pub struct KernelSpec {
    inner: Arc<Inner>,
}

struct Inner {
    parts: Parts,
    keys: SpecKeys,
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
        &self.inner.parts.name
    }

    /// The language of its source.
    #[must_use]
    pub fn language(&self) -> Language {
        self.inner.parts.language
    }

    /// Its source: UTF-8 text, unless its language [is binary](Language::is_binary).
    #[must_use]
    pub fn source(&self) -> &[u8] {
        &self.inner.parts.source
    }

    /// The entry point; none means a module with all its functions.
    #[must_use]
    pub fn entry(&self) -> Option<&str> {
        self.inner.parts.entry.as_deref()
    }

    /// Headers by the name that `#include` uses, sorted by name.
    #[must_use]
    pub fn headers(&self) -> &[(String, Arc<[u8]>)] {
        &self.inner.parts.headers
    }

    /// Preprocessor definitions, sorted by name.
    #[must_use]
    pub fn defines(&self) -> &[(String, String)] {
        &self.inner.parts.defines
    }

    /// The compiler's options, verbatim and in order.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.inner.parts.options
    }

    /// Specialization constants by name or number, sorted.
    #[must_use]
    pub fn constants(&self) -> &[(String, String)] {
        &self.inner.parts.constants
    }

    /// What is known of this spec on this profile: a walk over the few profiles it was asked for.
    #[inline]
    pub(crate) fn known(&self, profile: ProfileId) -> Option<&Known> {
        self.inner.keys.get(profile)
    }

    /// Its key on this profile, made now if this is the first time. `toolchain` says who compiles it.
    pub(crate) fn key<E: From<SpecError>>(
        &self,
        profile: &Profile,
        toolchain: impl FnOnce() -> Result<String, E>,
    ) -> Result<&KernelKey, E> {
        self.inner
            .keys
            .get_or_make(profile.id(), || Ok(self.make_key(profile.target(), toolchain()?)?))
    }

    fn make_key(&self, target: &Target, toolchain: String) -> Result<KernelKey, SpecError> {
        let parts = &self.inner.parts;
        let mut key = KernelKey::builder(&parts.name)
            .target(target.as_str())
            .toolchain(toolchain)
            .language(parts.language.name())
            .source(&parts.source[..]);
        for (name, content) in &parts.headers {
            key = key.header(name, &content[..]);
        }
        for (name, value) in &parts.defines {
            key = key.define(name, value);
        }
        for (name, value) in &parts.constants {
            key = key.constant(name, value);
        }
        for option in &parts.options {
            key = key.option(option);
        }
        if let Some(entry) = &parts.entry {
            key = key.entry(entry);
        }
        key.build().map_err(|error| parts.wrong(&format!("has no key: {error}")))
    }
}

impl fmt::Debug for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelSpec")
            .field("name", &self.name())
            .field("language", &self.language())
            .field("entry", &self.entry())
            .finish_non_exhaustive()
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
    /// An empty source, text that is not UTF-8 or holds a NUL (which no compiler's interface can
    /// carry), SPIR-V that is not whole words, or a header, a define or a constant that is named
    /// twice or has no name.
    pub fn build(mut self) -> Result<KernelSpec, SpecError> {
        let parts = &mut self.parts;
        parts.headers.sort_by(|a, b| a.0.cmp(&b.0));
        parts.defines.sort();
        parts.constants.sort();
        check_source(parts)?;
        check_names("header", parts, parts.headers.iter().map(|header| header.0.as_str()))?;
        check_names("define", parts, parts.defines.iter().map(|define| define.0.as_str()))?;
        check_names("constant", parts, parts.constants.iter().map(|it| it.0.as_str()))?;
        check_texts(parts)?;
        Ok(KernelSpec { inner: Arc::new(Inner { parts: self.parts, keys: SpecKeys::default() }) })
    }
}

fn check_source(parts: &Parts) -> Result<(), SpecError> {
    let source = &parts.source;
    if source.is_empty() {
        return Err(parts.wrong("has an empty source"));
    }
    if parts.language == Language::SpirV {
        return if source.len().is_multiple_of(4) {
            Ok(())
        } else {
            let message = format!("is {} bytes of SPIR-V, which is not whole words", source.len());
            Err(parts.wrong(&message))
        };
    }
    if parts.language.is_binary() {
        return Ok(());
    }
    match std::str::from_utf8(source) {
        Ok(text) if text.contains('\0') => Err(parts.wrong("has a NUL byte in its source")),
        Ok(_) => Ok(()),
        Err(error) => Err(parts.wrong(&format!(
            "is {} that is not UTF-8 (byte {})",
            parts.language,
            error.valid_up_to()
        ))),
    }
}

/// Names of one kind, sorted: none empty, none twice, and none with the `=` that would move the
/// border between it and its value on a command line.
fn check_names<'a>(
    kind: &str,
    parts: &Parts,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), SpecError> {
    let mut last = None;
    for name in names {
        if name.is_empty() {
            return Err(parts.wrong(&format!("has a {kind} without a name")));
        }
        if kind == "define" && name.contains('=') {
            return Err(parts.wrong(&format!("has a `=` in the name of the define `{name}`")));
        }
        if last == Some(name) {
            return Err(parts.wrong(&format!("has the {kind} `{name}` twice")));
        }
        last = Some(name);
    }
    Ok(())
}

fn check_texts(parts: &Parts) -> Result<(), SpecError> {
    if parts.entry.as_deref() == Some("") {
        return Err(parts.wrong("has an empty entry point; leave it out to mean all functions"));
    }
    let pairs = parts.defines.iter().chain(&parts.constants);
    let nul = parts
        .options
        .iter()
        .chain(pairs.flat_map(|(name, value)| [name, value]))
        .chain(&parts.entry)
        .chain(parts.headers.iter().map(|(name, _)| name))
        .find(|text| text.contains('\0'));
    match nul {
        Some(text) => Err(parts.wrong(&format!("has a NUL byte in {text:?}"))),
        None => Ok(()),
    }
}

impl Parts {
    fn wrong(&self, what: &str) -> SpecError {
        SpecError { message: format!("kernel `{}` {what}", self.name) }
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
