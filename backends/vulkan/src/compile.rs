//! From a spec to SPIR-V that a driver may see, and what its entry point binds.

use grainstore_runtime::{BackendError, KernelSpec, Language};

use crate::options;
use crate::spirv::{Constants, Interface, Malformed, Module, NoInterface, Specialized, from_bytes};

/// A kernel before any driver has seen it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) words: Vec<u32>,
    pub(crate) interface: Interface,
    /// Values that are not in the words yet.
    pub(crate) specialized: Vec<Specialized>,
    pub(crate) capabilities: Vec<u32>,
    /// Its minor version.
    pub(crate) spirv_version: u32,
    /// Made from another language, so worth keeping.
    pub(crate) translated: bool,
}

/// The kernel as SPIR-V: translated by naga from WGSL or GLSL, or as it is. It needs no device and
/// no driver, so that a build script may check kernels with it.
///
/// What comes of WGSL and GLSL has the one entry point, and the specialization constants are filled
/// in; they are still open in what came as SPIR-V.
///
/// # Errors
/// [`BackendError::Compile`] with line and column, [`BackendError::NoEntryPoint`], and
/// [`BackendError::Unsupported`] for what this backend can't do.
pub fn to_spirv(spec: &KernelSpec) -> Result<Vec<u32>, BackendError> {
    compile(spec).map(|compiled| compiled.words)
}

/// Compiles and checks.
pub(crate) fn compile(spec: &KernelSpec) -> Result<Compiled, BackendError> {
    check(spec)?;
    let options = options::check(spec)?;
    if spec.language() == Language::SpirV {
        let malformed =
            |why: Malformed| BackendError::Compile { log: format!("{}.spv: {why}", spec.name()) };
        let words = from_bytes(spec.source()).map_err(malformed)?;
        let constants = Constants::given(spec.constants());
        return reflect(spec, words, constants, false, malformed);
    }
    let words = translate(spec, options)?;
    reflect(spec, words, Constants::default(), true, |why| BackendError::Compile {
        log: format!("{}: what was translated is not usable: {why}", spec.name()),
    })
}

/// What [`compile`] made before, as it was stored.
pub(crate) fn stored(spec: &KernelSpec, bytes: &[u8]) -> Result<Compiled, BackendError> {
    let malformed = |why: Malformed| BackendError::InvalidArtifact {
        reason: format!("its SPIR-V is malformed: {why}"),
    };
    let words = from_bytes(bytes).map_err(malformed)?;
    reflect(spec, words, Constants::default(), true, malformed)
}

fn reflect(
    spec: &KernelSpec,
    words: Vec<u32>,
    constants: Constants,
    translated: bool,
    malformed: impl Fn(Malformed) -> BackendError,
) -> Result<Compiled, BackendError> {
    let module = Module::new(&words, constants).map_err(&malformed)?;
    let interface = Interface::of(&module, spec.entry()).map_err(|why| match why {
        NoInterface::EntryPoint(there) => {
            let there: Vec<_> = there.iter().map(String::as_str).collect();
            choose_entry(spec, &there).map_or_else(
                |error| error,
                |entry| {
                    malformed(Malformed::new(format!("the entry point `{entry}` is there twice")))
                },
            )
        }
        NoInterface::Malformed(why) => malformed(why),
    })?;
    Ok(Compiled {
        interface,
        specialized: module.constants.into_specialized(),
        capabilities: module.capabilities,
        spirv_version: module.minor_version,
        translated,
        words,
    })
}

/// The entry point that is asked for, or the only one.
pub(crate) fn choose_entry<'a>(
    spec: &KernelSpec,
    there: &[&'a str],
) -> Result<&'a str, BackendError> {
    let available = || there.iter().map(ToString::to_string).collect();
    match (spec.entry(), there) {
        (Some(entry), _) => there.iter().find(|name| **name == entry).copied().ok_or_else(|| {
            BackendError::NoEntryPoint { entry: entry.to_owned(), available: available() }
        }),
        (None, [only]) => Ok(only),
        (None, []) => {
            Err(BackendError::Compile { log: "there is no entry point for compute".to_owned() })
        }
        (None, _) => Err(BackendError::unsupported(
            format!(
                "kernel `{}` names no entry point, and there are several ({})",
                spec.name(),
                there.join(", ")
            ),
            "name one: a module of the Vulkan backend is a pipeline of one entry point",
        )),
    }
}

/// Refuses what this backend cannot do.
fn check(spec: &KernelSpec) -> Result<(), BackendError> {
    let takes_defines = match spec.language() {
        Language::Glsl => true,
        Language::Wgsl | Language::SpirV => false,
        _ => return Err(not_taken(spec)),
    };
    if let Some((header, _)) = spec.headers().first() {
        let hint = "nothing here resolves `#include`; give the source with its headers pasted in, \
                    or SPIR-V that a compiler with a preprocessor made of it";
        return Err(BackendError::unfit(spec, format!("the header `{header}`"), hint));
    }
    let Some((define, _)) = spec.defines().first() else { return Ok(()) };
    if !takes_defines {
        let hint = "WGSL and SPIR-V have no preprocessor; give it as a specialization constant (an \
                    `override` in WGSL)";
        return Err(BackendError::unfit(spec, format!("the define `{define}`"), hint));
    }
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let is_value = |value: &str| !value.contains(['\n', '\r', '#']) && !value.ends_with('\\');
    match spec.defines().iter().find(|(name, value)| !is_name(name) || !is_value(value)) {
        Some((define, _)) => {
            let hint = "a define is a plain name, and a value of one line";
            Err(BackendError::unfit(spec, format!("the define `{define}`"), hint))
        }
        None => Ok(()),
    }
}

#[cfg(any(feature = "wgsl", feature = "glsl"))]
fn translate(spec: &KernelSpec, options: options::Options) -> Result<Vec<u32>, BackendError> {
    crate::translate::to_spirv(spec, options)
}

#[cfg(not(any(feature = "wgsl", feature = "glsl")))]
fn translate(spec: &KernelSpec, _: options::Options) -> Result<Vec<u32>, BackendError> {
    Err(not_taken(spec))
}

/// Who translates this spec; none where nobody has to.
pub(crate) fn translator(spec: &KernelSpec) -> Option<&'static str> {
    match spec.language() {
        #[cfg(any(feature = "wgsl", feature = "glsl"))]
        Language::Wgsl | Language::Glsl => Some(crate::translate::translator()),
        _ => None,
    }
}

/// The language is not one of these.
pub(crate) fn not_taken(spec: &KernelSpec) -> BackendError {
    let hint = match spec.language() {
        Language::Wgsl => "this grainstore-vulkan was built without its feature `wgsl`",
        Language::Glsl => "this grainstore-vulkan was built without its feature `glsl`",
        _ => "the Vulkan backend takes SPIR-V, WGSL and GLSL",
    };
    BackendError::wrong_language(spec, hint)
}
