//! The examples' own manifest, read as `grainstore warm` reads it: what is tested is what is
//! compiled ahead of time.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use grainstore_examples::{Case, Variant};
use grainstore_runtime::{KernelSpec, Language};
use serde::Deserialize;

#[derive(Deserialize)]
struct Manifest {
    kernel: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    source: Option<PathBuf>,
    #[serde(default)]
    sources: Vec<PathBuf>,
    entry: Option<String>,
    #[serde(default)]
    headers: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    options_for: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    defines: BTreeMap<String, toml::Value>,
}

/// What one launch needs compiled.
pub(crate) struct Artifact {
    /// The kernel that its sources are of.
    pub(crate) case: Case,
    pub(crate) variant: Variant,
    /// One, or where a module is of one function, one for each.
    pub(crate) specs: Vec<KernelSpec>,
}

/// The folder of kernels and manifest.
pub(crate) fn folder() -> PathBuf {
    // Cargo sets it at run time too, and so does who runs this program on a machine without the sources.
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).join("kernels")
}

/// Everything that the manifest makes in this language.
pub(crate) fn artifacts(language: Language) -> Vec<Artifact> {
    let mut artifacts: Vec<Artifact> = Vec::new();
    for artifact in read().kernel.iter().flat_map(|entry| entry.artifacts(language)) {
        let is_same = |other: &&mut Artifact| {
            other.case.name() == artifact.case.name() && other.variant == artifact.variant
        };
        match artifacts.iter_mut().find(is_same) {
            Some(other) => other.specs.extend(artifact.specs),
            None => artifacts.push(artifact),
        }
    }
    artifacts
}

/// What it makes of one kernel in this language.
pub(crate) fn artifacts_of(case: &str, language: Language) -> Vec<Artifact> {
    let mut artifacts = artifacts(language);
    artifacts.retain(|artifact| artifact.case.name() == case);
    assert!(!artifacts.is_empty(), "the manifest has no {case} in {language}");
    artifacts
}

/// The kernel that a source of this name is of, and its element type where the name says it: a
/// language without a preprocessor has a source for each.
pub(crate) fn case_of(stem: &str) -> (Case, Option<&'static str>) {
    let (name, element) = match stem.strip_suffix("_int") {
        Some(name) => (name, Some("int")),
        None => (stem, None),
    };
    (Case::named(name).unwrap_or_else(|| panic!("no test launches {stem}")), element)
}

/// What the manifest makes in double precision for the host, made of the sources of this extension.
pub(crate) fn doubles(extension: &str) -> Vec<Artifact> {
    let language = Language::from_extension(extension).unwrap();
    let mut entries = read().kernel;
    entries.retain(|entry| entry.defines.get("T").and_then(toml::Value::as_str) == Some("double"));
    for entry in &mut entries {
        entry.source = entry.source.take().map(|path| path.with_extension(extension));
        // They are for a C compiler.
        entry.options.clear();
    }
    let artifacts: Vec<_> = entries.iter().flat_map(|entry| entry.artifacts(language)).collect();
    assert!(!artifacts.is_empty(), "the manifest has no doubles");
    artifacts
}

fn read() -> Manifest {
    let text = fs::read_to_string(folder().join("grainstore.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

impl Entry {
    fn artifacts(&self, language: Language) -> Vec<Artifact> {
        let extension = |path: &&PathBuf| {
            Language::from_extension(path.extension().unwrap().to_str().unwrap()) == Some(language)
        };
        let Some(path) = self.source.iter().chain(&self.sources).find(extension) else {
            return Vec::new();
        };
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let (case, element) = case_of(stem);
        let source = fs::read(folder().join(path)).unwrap();
        self.variants()
            .into_iter()
            .map(|defines| {
                let specs = vec![self.spec(language, &source, &defines)];
                let element = element.map(|name| ("T".to_owned(), name.to_owned()));
                let variant = Variant::new(defines.into_iter().chain(element).collect());
                Artifact { case, variant, specs }
            })
            .collect()
    }

    fn spec(&self, language: Language, source: &[u8], defines: &[(String, String)]) -> KernelSpec {
        let mut spec = KernelSpec::builder(&self.name, language).source(source);
        if let Some(entry) = &self.entry {
            spec = spec.entry(entry);
        }
        let preprocessed = language.has_preprocessor();
        for header in self.headers.iter().filter(|_| preprocessed) {
            spec = spec.header(header, fs::read(folder().join(header)).unwrap());
        }
        for (name, value) in defines {
            spec = if preprocessed { spec.define(name, value) } else { spec.constant(name, value) };
        }
        let own = self.options_for.get(language.name());
        for option in self.options.iter().chain(own.into_iter().flatten()) {
            spec = spec.option(option);
        }
        spec.build().unwrap()
    }

    /// Every combination of the values in lists.
    fn variants(&self) -> Vec<Vec<(String, String)>> {
        let mut variants = vec![Vec::new()];
        for (name, value) in &self.defines {
            let values = match value {
                toml::Value::Array(values) => values.iter().map(text).collect(),
                value => vec![text(value)],
            };
            variants = variants
                .into_iter()
                .flat_map(|variant: Vec<(String, String)>| {
                    values.iter().map(move |value| {
                        [variant.clone(), vec![(name.clone(), value.clone())]].concat()
                    })
                })
                .collect();
        }
        variants
    }
}

/// A define's value as the preprocessor gets it.
fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Boolean(flag) => u8::from(*flag).to_string(),
        other => panic!("the examples have no define such as {other:?}"),
    }
}
