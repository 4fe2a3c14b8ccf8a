//! The options that a spec may give for the translation of WGSL and GLSL.
//!
//! They are this backend's own, since naga is called as a library. SPIR-V takes none: whoever made
//! it has made all choices.

use grainstore_runtime::{BackendError, KernelSpec, Language};

/// How the source is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Indices stay in their bounds, loops come to an end as far as the driver's compiler is told,
    /// and division by zero has a result: what WGSL promises.
    pub(crate) checks: bool,
    /// Workgroup memory is zero at the start: what WGSL promises too.
    pub(crate) zero_workgroup: bool,
}

/// The options of this spec, or which one is refused, and why.
pub(crate) fn check(spec: &KernelSpec) -> Result<Options, BackendError> {
    // GLSL promises neither.
    let wgsl = spec.language() == Language::Wgsl;
    let mut options = Options { checks: wgsl, zero_workgroup: wgsl };
    for option in spec.options() {
        match option.as_str() {
            _ if spec.language() == Language::SpirV => {
                return Err(BackendError::refused_option(
                    spec.name(),
                    option,
                    "SPIR-V is taken as it is",
                ));
            }
            "--checked" => options.checks = true,
            "--unchecked" => options.checks = false,
            "--zero-workgroup-memory" => options.zero_workgroup = true,
            "--no-zero-workgroup-memory" => options.zero_workgroup = false,
            _ => {
                let hint = "the Vulkan backend knows --checked, --unchecked, \
                            --zero-workgroup-memory and --no-zero-workgroup-memory";
                return Err(BackendError::refused_option(spec.name(), option, hint));
            }
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(language: Language, options: &[&str]) -> Result<Options, String> {
        let spec = KernelSpec::builder("k", language).source("text");
        let spec = options.iter().fold(spec, |spec, option| spec.option(*option));
        check(&spec.build().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_language_gets_what_it_promises() {
        let all = Options { checks: true, zero_workgroup: true };
        let none = Options { checks: false, zero_workgroup: false };
        assert_eq!(options(Language::Wgsl, &[]).unwrap(), all);
        assert_eq!(options(Language::Glsl, &[]).unwrap(), none);
        let off = ["--unchecked", "--no-zero-workgroup-memory"];
        assert_eq!(options(Language::Wgsl, &off).unwrap(), none);
        let on = ["--checked", "--zero-workgroup-memory"];
        assert_eq!(options(Language::Glsl, &on).unwrap(), all);
    }

    #[test]
    fn others_are_refused_with_advice() {
        let error = options(Language::Wgsl, &["-O3"]).unwrap_err();
        assert!(error.contains("`-O3` of kernel `k`") && error.contains("--unchecked"), "{error}");
        let error = options(Language::SpirV, &["--unchecked"]).unwrap_err();
        assert!(error.contains("taken as it is"), "{error}");
    }
}
