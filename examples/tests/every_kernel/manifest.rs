//! The examples' own manifest, read as `grainstore warm` reads it: what is tested is what is
//! compiled ahead of time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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

/// One thing to compile.
pub(crate) struct Artifact {
    /// The kernel that its source is of.
    pub(crate) case: Case,
    pub(crate) variant: Variant,
    pub(crate) spec: KernelSpec,
}

/// The folder of kernels and manifest.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

/// Everything that the manifest makes in this language.
pub(crate) fn artifacts(language: Language) -> Vec<Artifact> {
    read().kernel.iter().flat_map(|entry| entry.artifacts(language)).collect()
}

/// What the manifest makes in double precision for the host, made of the OpenCL C sources.
pub(crate) fn doubles_in_opencl_c() -> Vec<Artifact> {
    let mut entries = read().kernel;
    entries.retain(|entry| entry.defines.get("T").and_then(toml::Value::as_str) == Some("double"));
    for entry in &mut entries {
        entry.source = entry.source.take().map(|path| path.with_extension("cl"));
        // They are for a C compiler.
        entry.options.clear();
    }
    entries.iter().flat_map(|entry| entry.artifacts(Language::OpenClC)).collect()
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
        let case = Case::named(stem).unwrap_or_else(|| panic!("no test launches {stem}"));
        let source = fs::read(folder().join(path)).unwrap();
        let spec = |variant: &Variant| self.spec(language, &source, variant);
        self.variants()
            .into_iter()
            .map(|variant| Artifact { case, spec: spec(&variant), variant })
            .collect()
    }

    fn spec(&self, language: Language, source: &[u8], variant: &Variant) -> KernelSpec {
        let mut spec = KernelSpec::builder(&self.name, language).source(source);
        if let Some(entry) = &self.entry {
            spec = spec.entry(entry);
        }
        for header in &self.headers {
            spec = spec.header(header, fs::read(folder().join(header)).unwrap());
        }
        for (name, value) in variant.defines() {
            spec = spec.define(name, value);
        }
        let own = self.options_for.get(language.name());
        for option in self.options.iter().chain(own.into_iter().flatten()) {
            spec = spec.option(option);
        }
        spec.build().unwrap()
    }

    /// Every combination of the values in lists.
    fn variants(&self) -> Vec<Variant> {
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
        variants.into_iter().map(Variant::new).collect()
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
