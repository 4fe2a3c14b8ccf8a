//! What a manifest says, held against the files beside it and the backends of this program.
//!
//! Everything wrong is collected, so that one run shows all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Component, Path};
use std::sync::Arc;

use grainstore_runtime::Language;
use toml::Spanned;

use super::diagnostic::{Diagnostic, closest};
use super::matrix::{self, MOST, Variant};
use super::raw::{RawDefine, RawKernel, RawManifest};
use super::{FILE_NAME, Kernel, KnownBackend, Source};
use crate::backends::LEFT_OUT;

/// The kernels that are right, and what is wrong with the others, in the order of the text.
pub(super) fn check(
    raw: RawManifest,
    folder: &Path,
    known: &[KnownBackend],
) -> (Vec<Kernel>, Vec<Diagnostic>) {
    if raw.kernels.is_empty() && raw.wrong.is_empty() {
        let help = format!(
            "add one: a [[kernel]] with a name and a source beside this {FILE_NAME} is enough"
        );
        let empty = Diagnostic::new("there is no [[kernel]]", None).with_help(help);
        return (Vec::new(), vec![empty]);
    }
    let mut checker = Checker { folder, known, names: BTreeSet::new(), wrong: raw.wrong };
    let kernels = raw.kernels.into_iter().filter_map(|kernel| checker.kernel(kernel)).collect();
    checker.wrong.sort_by_key(Diagnostic::start);
    (kernels, checker.wrong)
}

struct Checker<'a> {
    folder: &'a Path,
    known: &'a [KnownBackend],
    /// Those seen so far.
    names: BTreeSet<String>,
    wrong: Vec<Diagnostic>,
}

impl Checker<'_> {
    fn wrong(&mut self, message: impl Into<String>, span: Range<usize>, help: impl Into<String>) {
        self.wrong.push(Diagnostic::at(message, span).with_help(help));
    }

    /// The kernel, if nothing is wrong with it.
    fn kernel(&mut self, raw: RawKernel) -> Option<Kernel> {
        let before = self.wrong.len();
        self.name(&raw.name);
        let sources = self.sources(&raw);
        let backends = raw.backends.map(|names| self.backends(names, &sources));
        let entry = raw.entry.map(|entry| {
            if entry.get_ref().trim().is_empty() {
                let help = "leave `entry` out to take the source with all its functions";
                self.wrong("the entry point is empty", entry.span(), help);
            }
            entry.into_inner()
        });
        let place = raw.name.span();
        let kernel = Kernel {
            name: raw.name.into_inner(),
            sources,
            entry,
            backends,
            variants: self.variants(raw.defines),
            headers: self.headers(raw.headers),
            options: raw.options,
            options_for: self.options_for(raw.options_for),
        };
        if self.wrong.len() == before {
            self.specs(&kernel, place);
        }
        for diagnostic in &mut self.wrong[before..] {
            diagnostic.set_kernel(&kernel.name);
        }
        (self.wrong.len() == before).then_some(kernel)
    }

    fn name(&mut self, name: &Spanned<String>) {
        let text = name.get_ref();
        if text.trim().is_empty() || text.contains(char::is_control) {
            let help = "give the kernel a name of one line";
            self.wrong("this is no name", name.span(), help);
        } else if !self.names.insert(text.clone()) {
            self.wrong(
                format!("there are two kernels named `{text}`"),
                name.span(),
                "name each kernel differently, or make them one with a list of defines",
            );
        }
    }

    /// What the runtime itself refuses is found here, before anything is begun.
    fn specs(&mut self, kernel: &Kernel, place: Range<usize>) {
        let mut all = kernel
            .sources
            .iter()
            .flat_map(|source| kernel.variants.iter().map(|variant| kernel.spec(source, variant)));
        if let Some(error) = all.find_map(Result::err) {
            self.wrong(error.to_string(), place, "change it in this [[kernel]]");
        }
    }

    fn sources(&mut self, raw: &RawKernel) -> Vec<Source> {
        let files = match (&raw.source, &raw.sources) {
            (Some(source), None) => std::slice::from_ref(source),
            (None, Some(sources)) => {
                if sources.get_ref().is_empty() {
                    self.wrong("the list is empty", sources.span(), "name at least one file");
                }
                if let Some(language) = &raw.language {
                    let help = "leave it out: with `sources`, each file's extension says it";
                    self.wrong("`language` goes with one `source`", language.span(), help);
                }
                sources.get_ref()
            }
            (Some(_), Some(sources)) => {
                let help = "keep one: `source` for one file, `sources` for one in each language";
                self.wrong("there is both `source` and `sources`", sources.span(), help);
                return Vec::new();
            }
            (None, None) => {
                let message = format!("kernel `{}` has no source", raw.name.get_ref());
                self.wrong(message, raw.name.span(), "add source = \"FILE\"");
                return Vec::new();
            }
        };
        let said = raw.source.as_ref().and(raw.language.as_ref());
        let mut sources: Vec<Source> = Vec::new();
        for file in files {
            let language = match said {
                Some(said) => self.language(said),
                None => self.language_of(file),
            };
            let text = self.read(file, !language.is_some_and(Language::is_binary));
            if text.as_ref().is_some_and(Vec::is_empty) {
                let message = format!("`{}` is empty", file.get_ref());
                self.wrong(message, file.span(), "write the kernel into it");
            }
            let (Some(language), Some(text)) = (language, text) else { continue };
            if sources.iter().any(|other| other.language == language) {
                let message = format!("there are two sources in {language}");
                self.wrong(message, file.span(), "keep one source for each language");
            } else {
                sources.push(Source { language, text });
            }
        }
        sources
    }

    fn language(&mut self, name: &Spanned<String>) -> Option<Language> {
        let language = Language::from_name(name.get_ref());
        if language.is_none() {
            let names = Language::ALL.map(Language::name);
            let help = suggestion(name.get_ref(), &names, "languages");
            self.wrong(format!("unknown language `{}`", name.get_ref()), name.span(), help);
        }
        language
    }

    fn language_of(&mut self, file: &Spanned<String>) -> Option<Language> {
        let extension = Path::new(file.get_ref()).extension().and_then(|text| text.to_str());
        let language = extension.and_then(Language::from_extension);
        if language.is_none() {
            let names = Language::ALL.map(Language::name).join(", ");
            self.wrong(
                format!("the name of `{}` does not say its language", file.get_ref()),
                file.span(),
                format!("give it a known extension, or set `language` to one of: {names}"),
            );
        }
        language
    }

    fn read(&mut self, file: &Spanned<String>, text: bool) -> Option<Vec<u8>> {
        let path = self.folder.join(file.get_ref());
        let name = file.get_ref();
        match fs::read(&path) {
            Ok(content) if text && std::str::from_utf8(&content).is_err() => {
                let help = "save the file as UTF-8, or say its language if it is not text";
                self.wrong(format!("`{name}` is not UTF-8 text"), file.span(), help);
                None
            }
            Ok(content) => Some(content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let help = format!(
                    "names are relative to the manifest; this one means {}",
                    path.display()
                );
                self.wrong(format!("there is no file `{name}`"), file.span(), help);
                None
            }
            Err(error) => {
                let message = format!("`{name}` can't be read: {error}");
                let help = format!("name a file that this user may read, not {}", path.display());
                self.wrong(message, file.span(), help);
                None
            }
        }
    }

    fn backends(
        &mut self,
        names: Spanned<Vec<Spanned<String>>>,
        sources: &[Source],
    ) -> Vec<String> {
        if names.get_ref().is_empty() {
            let help = "name a backend, or leave the field out for all that take the language";
            self.wrong("the list is empty", names.span(), help);
        }
        for name in names.get_ref() {
            let Some(backend) = self.known.iter().find(|known| known.name == *name.get_ref())
            else {
                if LEFT_OUT.contains(&name.get_ref().as_str()) {
                    continue;
                }
                let all: Vec<_> = self.known.iter().map(|known| known.name.as_str()).collect();
                let help = suggestion(name.get_ref(), &all, "backends");
                self.wrong(format!("unknown backend `{}`", name.get_ref()), name.span(), help);
                continue;
            };
            let takes = |source: &Source| backend.languages.contains(&source.language);
            if !sources.is_empty() && !sources.iter().any(takes) {
                let takes: Vec<_> = backend.languages.iter().map(|known| known.name()).collect();
                let has: Vec<_> = sources.iter().map(|source| source.language.name()).collect();
                let message = format!("{} does not take {}", backend.name, has.join(" or "));
                let help = format!("give the kernel a source in {}", takes.join(" or "));
                self.wrong(message, name.span(), help);
            }
        }
        let names: BTreeSet<_> = names.into_inner().into_iter().map(Spanned::into_inner).collect();
        names.into_iter().collect()
    }

    fn variants(&mut self, defines: BTreeMap<Spanned<String>, Spanned<RawDefine>>) -> Vec<Variant> {
        let whole = defines.keys().next().map(Spanned::span);
        let mut checked = Vec::new();
        for (name, value) in defines {
            if !is_identifier(name.get_ref()) {
                let help = "use letters, digits and underscores, no digit first";
                let message = format!("`{}` is no name for a define", name.get_ref());
                self.wrong(message, name.span(), help);
            }
            if let RawDefine::Each(values) = value.get_ref() {
                let mut seen = BTreeSet::new();
                if values.is_empty() {
                    let help = "give it at least one value, or take the define out";
                    let message = format!("the list of `{}` is empty", name.get_ref());
                    self.wrong(message, value.span(), help);
                } else if let Some(twice) = values.iter().find(|value| !seen.insert(*value)) {
                    let message = format!("the list of `{}` has {twice} twice", name.get_ref());
                    self.wrong(message, value.span(), "take one of them out");
                }
            }
            checked.push((name.into_inner(), value.into_inner()));
        }
        if matrix::count(&checked).is_none() {
            let message = format!("the lists of defines make more than {MOST} variants");
            let help = "shorten the lists, or split the kernel in several";
            self.wrong.push(Diagnostic::new(message, whole).with_help(help));
            return Vec::new();
        }
        matrix::expand(checked)
    }

    /// A header's name is what `#include` says, so it may not lead out of the folder.
    fn headers(&mut self, names: Vec<Spanned<String>>) -> Vec<(String, Arc<[u8]>)> {
        let mut seen = BTreeSet::new();
        let mut headers = Vec::new();
        for name in names {
            let plain = Path::new(name.get_ref())
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
            if !plain {
                let help =
                    "write it as #include does, with no `.` or `..`, below the manifest's folder";
                let message = format!("`{}` is no plain name of a header", name.get_ref());
                self.wrong(message, name.span(), help);
            } else if !seen.insert(name.get_ref().clone()) {
                let message = format!("the header `{}` is named twice", name.get_ref());
                self.wrong(message, name.span(), "take one of them out");
            } else if let Some(content) = self.read(&name, true) {
                headers.push((name.into_inner(), content.into()));
            }
        }
        headers
    }

    fn options_for(
        &mut self,
        raw: BTreeMap<Spanned<String>, Vec<String>>,
    ) -> Vec<(Language, Vec<String>)> {
        raw.into_iter()
            .filter_map(|(name, options)| Some((self.language(&name)?, options)))
            .collect()
    }
}

/// What to write instead of an unknown name: the nearest known one, else all of them.
pub(crate) fn suggestion(written: &str, known: &[&str], what: &str) -> String {
    match closest(written, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("the {what} are: {}", known.join(", ")),
    }
}

fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
        && letters.all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
}
