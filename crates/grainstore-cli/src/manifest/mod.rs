//! The manifest `grainstore.toml`: which kernels, from which sources, in which variants.
//!
//! Text becomes a tree with spans ([`raw`]), the tree is checked against the files beside it and
//! the backends of this program ([`check`]), lists of defines become variants ([`matrix`]). What is
//! wrong is told with line and column, all of it at once ([`diagnostic`]).

mod check;
mod diagnostic;
mod find;
mod matrix;
mod raw;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore_runtime::{KernelSpec, Language, SpecError};

pub(crate) use check::suggestion;
pub(crate) use diagnostic::ManifestError;
pub(crate) use find::{FILE_NAME, Found, find};
pub(crate) use matrix::Variant;

/// A backend that manifests and command lines may name.
#[derive(Clone, Debug)]
pub(crate) struct KnownBackend {
    /// The name used in manifests and on the command line.
    pub(crate) name: String,
    /// The languages it takes, the preferred one first.
    pub(crate) languages: Vec<Language>,
    /// It compiles for targets that need not be here.
    pub(crate) compiles_ahead: bool,
}

/// A manifest that has been checked: every file that its kernels name was read, and every name that
/// they use is known.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// Its kernels, in the order written; at least one.
    pub(crate) kernels: Vec<Kernel>,
    /// What is wrong with others that it has.
    pub(crate) wrong: Option<ManifestError>,
}

/// One `[[kernel]]` of a manifest.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Its name, unique in the manifest.
    pub(crate) name: String,
    /// Its sources, at most one of each language.
    pub(crate) sources: Vec<Source>,
    /// Its entry point.
    pub(crate) entry: Option<String>,
    /// The backends it names, or none for every one that takes a source of it.
    pub(crate) backends: Option<Vec<String>>,
    /// Its variants, in a stable order; one, without a label, where no define is a list.
    pub(crate) variants: Vec<Variant>,
    headers: Vec<(String, Arc<[u8]>)>,
    options: Vec<String>,
    options_for: Vec<(Language, Vec<String>)>,
}

/// One source file of a kernel.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its language.
    pub(crate) language: Language,
    /// Its content.
    pub(crate) text: Vec<u8>,
}

impl Manifest {
    /// Reads and checks the manifest of that path; a folder means the `grainstore.toml` in it.
    ///
    /// What is wrong with one kernel does not keep the others from being made.
    ///
    /// # Errors
    /// When no kernel is left: with all that is wrong, at once.
    pub(crate) fn read(path: &Path, known: &[KnownBackend]) -> Result<Self, ManifestError> {
        let path = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
        let bytes = fs::read(&path).map_err(|error| ManifestError::unreadable(&path, &error))?;
        let text = String::from_utf8(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
            .map_err(|error| ManifestError::unreadable(&path, &error))?;
        let (kernels, diagnostics) = match raw::parse(&text) {
            Ok(raw) => check::check(raw, folder_of(&path), known),
            Err(diagnostic) => (Vec::new(), vec![diagnostic]),
        };
        let wrong =
            (!diagnostics.is_empty()).then(|| ManifestError::new(path.clone(), text, diagnostics));
        match wrong {
            Some(wrong) if kernels.is_empty() => Err(wrong),
            wrong => Ok(Self { path, kernels, wrong }),
        }
    }
}

impl Kernel {
    /// The first source whose language is in the list, if there is one.
    #[must_use]
    pub(crate) fn source_for(&self, languages: &[Language]) -> Option<&Source> {
        self.sources.iter().find(|source| languages.contains(&source.language))
    }

    /// What to compile for one source and variant.
    ///
    /// In a language without a preprocessor a define is a specialization constant of that name. The
    /// headers are then those of the other sources; without such a one they are given all the same,
    /// for the backend to say what to do instead.
    ///
    /// # Errors
    /// Where the parts do not make a spec.
    pub(crate) fn spec(&self, source: &Source, variant: &Variant) -> Result<KernelSpec, SpecError> {
        let mut spec =
            KernelSpec::builder(&self.name, source.language).source(source.text.as_slice());
        if let Some(entry) = &self.entry {
            spec = spec.entry(entry);
        }
        let preprocessed = source.language.has_preprocessor();
        if preprocessed || !self.sources.iter().any(|other| other.language.has_preprocessor()) {
            for (name, content) in &self.headers {
                spec = spec.header(name, content.to_vec());
            }
        }
        for (name, value) in &variant.defines {
            spec = if preprocessed { spec.define(name, value) } else { spec.constant(name, value) };
        }
        let own = self.options_for.iter().find(|(language, _)| *language == source.language);
        for option in self.options.iter().chain(own.into_iter().flat_map(|(_, options)| options)) {
            spec = spec.option(option);
        }
        spec.build()
    }
}

/// The folder that a manifest's relative names start from.
fn folder_of(manifest: &Path) -> &Path {
    match manifest.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
