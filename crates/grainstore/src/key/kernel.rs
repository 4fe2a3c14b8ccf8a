//! The key of a compiled kernel.

use std::borrow::Cow;
use std::fmt;
use std::hash::Hash;

use super::content::ContentId;
use super::difference::{self, Difference, Field};
use super::encoding;
use super::error::KeyError;
use super::fingerprint::Fingerprint;
use super::hashed::Hashed;

/// Everything that changes a kernel's binary, and nothing that does not: no device index, no path,
/// no time. So one key serves all equal devices, the disk and other machines.
///
/// It is encoded and hashed once, when it is built. A clone shares it; a look-up hashes one `u64`
/// and compares 32 bytes. Sources and headers are remembered by length and digest alone.
///
/// ```
/// use grainstore::KernelKey;
/// let builder = KernelKey::builder("saxpy")
///     .target("sm_90a")
///     .language("cuda-c++")
///     .source("__global__ void saxpy() {}")
///     .define("BLOCK", "128")
///     .option("--use_fast_math");
/// let old = builder.clone().toolchain("nvrtc 12.2.140").build()?;
/// let new = builder.toolchain("nvrtc 12.9.86").build()?;
/// assert_ne!(old.fingerprint(), new.fingerprint());
/// assert_eq!(old.differences(&new)[0].to_string(), "toolchain: nvrtc 12.2.140 -> nvrtc 12.9.86");
/// # Ok::<(), grainstore::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KernelKey(Hashed<KernelParts>);

/// The fields, in the order of the encoding.
#[derive(Clone, Debug)]
pub(super) struct KernelParts {
    pub(super) name: String,
    pub(super) entry: Option<String>,
    pub(super) target: String,
    pub(super) toolchain: String,
    pub(super) language: String,
    pub(super) source: ContentId,
    pub(super) headers: Vec<(String, ContentId)>,
    pub(super) defines: Vec<(String, String)>,
    pub(super) constants: Vec<(String, String)>,
    pub(super) options: Vec<String>,
}

impl Default for KernelParts {
    fn default() -> Self {
        Self {
            name: String::new(),
            entry: None,
            target: String::new(),
            toolchain: String::new(),
            language: String::new(),
            source: ContentId::of([]),
            headers: Vec::new(),
            defines: Vec::new(),
            constants: Vec::new(),
            options: Vec::new(),
        }
    }
}

impl KernelKey {
    /// Starts a key with the kernel's name, which is part of it.
    pub fn builder(name: impl Into<String>) -> KernelKeyBuilder {
        KernelKeyBuilder { parts: KernelParts { name: name.into(), ..KernelParts::default() } }
    }

    /// The hash of all its fields: the same in every process and on every machine.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint()
    }

    /// The kernel's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.parts().name
    }

    /// The entry point; none means a module with all its functions.
    #[must_use]
    pub fn entry(&self) -> Option<&str> {
        self.0.parts().entry.as_deref()
    }

    /// What the code is made for: architecture and features.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.0.parts().target
    }

    /// Who makes the code: compiler and driver with their versions.
    #[must_use]
    pub fn toolchain(&self) -> &str {
        &self.0.parts().toolchain
    }

    /// The language of the source.
    #[must_use]
    pub fn language(&self) -> &str {
        &self.0.parts().language
    }

    /// The identity of the source.
    #[must_use]
    pub fn source(&self) -> ContentId {
        self.0.parts().source
    }

    /// The names of the headers with their identities, sorted by name.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = (&str, ContentId)> {
        self.0.parts().headers.iter().map(|(name, content)| (name.as_str(), *content))
    }

    /// The defines, sorted by name.
    pub fn defines(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.parts().defines.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The specialization constants, sorted by name.
    pub fn constants(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.parts().constants.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The compiler's options, verbatim and in order.
    pub fn options(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.parts().options.iter().map(String::as_str)
    }

    /// All fields as text, in the order of the encoding: what a store writes beside an artifact, so
    /// that it can be read, and compared with [`Difference::between`]. Each name stands once; two
    /// keys are equal where their fields are.
    ///
    /// Sources and headers are given as `26 bytes, BLAKE3 ...`, the options as one list.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        let parts = self.0.parts();
        let text = |(name, value)| -> Field<'_> { (Cow::Borrowed(name), Cow::Borrowed(value)) };
        let options = (!parts.options.is_empty())
            .then(|| ("options".into(), difference::list(self.options()).into()));
        std::iter::once(("name", self.name()))
            .chain(self.entry().map(|entry| ("entry", entry)))
            .chain([
                ("target", self.target()),
                ("toolchain", self.toolchain()),
                ("language", self.language()),
            ])
            .map(text)
            .chain([("source".into(), parts.source.to_string().into())])
            .chain(self.headers().map(|(name, content)| {
                (format!("header {name}").into(), content.to_string().into())
            }))
            .chain(
                self.defines().map(|(name, value)| (format!("define {name}").into(), value.into())),
            )
            .chain(
                self.constants()
                    .map(|(name, value)| (format!("constant {name}").into(), value.into())),
            )
            .chain(options)
    }

    /// The fields in which the other key differs, in the order of the encoding.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        Difference::between(self.fields(), other.fields())
    }
}

/// Shows the name and the fingerprint.
impl fmt::Display for KernelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.fingerprint())
    }
}

impl fmt::Debug for KernelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.fields()).finish()
    }
}

/// Collects the fields of a [`KernelKey`].
///
/// All fields but the name may be left out, and count as empty then: whoever keeps kernels in the
/// memory of one process needs no toolchain to tell them apart. What is kept beyond the process
/// needs all that the binary depends on.
///
/// It holds digests only, so that a clone is cheap: one builder with the source in it makes the keys
/// of several targets.
#[derive(Clone, Debug)]
#[must_use]
pub struct KernelKeyBuilder {
    parts: KernelParts,
}

impl KernelKeyBuilder {
    /// The entry point, where one is compiled for itself.
    pub fn entry(mut self, entry: impl Into<String>) -> Self {
        self.parts.entry = Some(entry.into());
        self
    }

    /// What the code is made for: architecture and features.
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.parts.target = target.into();
        self
    }

    /// Who makes the code: compiler and driver with their versions, and what else changes their
    /// output.
    pub fn toolchain(mut self, toolchain: impl Into<String>) -> Self {
        self.parts.toolchain = toolchain.into();
        self
    }

    /// The language of the source.
    pub fn language(mut self, language: impl Into<String>) -> Self {
        self.parts.language = language.into();
        self
    }

    /// The source. It is hashed here and not kept.
    pub fn source(mut self, source: impl AsRef<[u8]>) -> Self {
        self.parts.source = ContentId::of(source);
        self
    }

    /// A header, by the name that the source includes it by. It is hashed here and not kept.
    pub fn header(mut self, name: impl Into<String>, content: impl AsRef<[u8]>) -> Self {
        self.parts.headers.push((name.into(), ContentId::of(content)));
        self
    }

    /// A preprocessor definition. The order of definitions does not matter.
    pub fn define(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parts.defines.push((name.into(), value.into()));
        self
    }

    /// A specialization constant, by name or number. Their order does not matter.
    pub fn constant(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parts.constants.push((name.into(), value.into()));
        self
    }

    /// One more option for the compiler, verbatim, behind the others.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.parts.options.push(option.into());
        self
    }

    /// The key.
    ///
    /// # Errors
    /// [`KeyError::Duplicate`] where a header, a define or a constant is named twice, even with the
    /// same value.
    pub fn build(self) -> Result<KernelKey, KeyError> {
        let mut parts = self.parts;
        sort_by_name("header", &mut parts.headers)?;
        sort_by_name("define", &mut parts.defines)?;
        sort_by_name("constant", &mut parts.constants)?;
        let encoding = encoding::kernel(&parts);
        Ok(KernelKey(Hashed::new(parts, encoding)))
    }
}

/// Brings a field whose order does not matter into the one order that is encoded.
pub(super) fn sort_by_name<T>(
    field: &'static str,
    items: &mut [(String, T)],
) -> Result<(), KeyError> {
    items.sort_by(|(a, _), (b, _)| a.cmp(b));
    match items.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(KeyError::Duplicate { field, name: pair[0].0.clone() }),
        None => Ok(()),
    }
}
