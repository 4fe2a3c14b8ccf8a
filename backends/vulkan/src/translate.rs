//! WGSL and GLSL to SPIR-V, by naga: needs no device and no driver.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use grainstore_runtime::parts::digest;
use grainstore_runtime::{BackendError, KernelSpec, Language};
use naga::back::PipelineConstants;
use naga::back::pipeline_constants::{PipelineConstantError, process_overrides};
use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{Module, Override, ScalarKind, ShaderStage, TypeInner};

use crate::compile;
use crate::options::Options;
use crate::spirv;

/// naga's release. A test holds it against the lock file.
const NAGA: &str = "naga 30.0.2";

/// Greatest number up to which every whole one is a double, which is what naga takes.
const EXACT: u128 = 1 << 53;

/// Who translates, as the key says it: the release, and a digest of what it makes of a probe. A lock
/// file other than this project's may pick another patch release, which cannot be asked its name.
pub(crate) fn translator() -> &'static str {
    static TRANSLATOR: OnceLock<String> = OnceLock::new();
    TRANSLATOR.get_or_init(|| {
        let made = probe().map(|words| spirv::to_bytes(&words)).unwrap_or_default();
        format!("{NAGA} ({})", &digest(made)[..8])
    })
}

/// What naga makes of the probe, which needs no front end but WGSL's.
#[cfg(feature = "wgsl")]
fn probe() -> Option<Vec<u32>> {
    // A bit of everything that one release might make differently from another.
    let source = include_str!("probe.wgsl");
    let spec = KernelSpec::builder("probe", Language::Wgsl).source(source).build().ok()?;
    to_spirv(&spec, Options { checks: true, zero_workgroup: true }).ok()
}

#[cfg(not(feature = "wgsl"))]
fn probe() -> Option<Vec<u32>> {
    None
}

/// The source as SPIR-V with this one entry point, its specialization constants filled in.
pub(crate) fn to_spirv(spec: &KernelSpec, options: Options) -> Result<Vec<u32>, BackendError> {
    // naga is young, and a panic in it is a source that does not compile, not the program's end.
    catch_unwind(AssertUnwindSafe(|| translate(spec, options))).unwrap_or_else(|_| {
        let log = format!("{NAGA} panicked on kernel `{}`; its words are above", spec.name());
        Err(BackendError::Compile { log })
    })
}

fn translate(spec: &KernelSpec, options: Options) -> Result<Vec<u32>, BackendError> {
    let source = str::from_utf8(spec.source())
        .map_err(|_| BackendError::Compile { log: "the source is not UTF-8".to_owned() })?;
    let file = format!("{}.{}", spec.name(), extension(spec.language()));
    let wrong = |log: String| BackendError::Compile { log };

    let module = parse(spec, source, &file)?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .validate(&module)
        .map_err(|error| wrong(error.emit_to_string_with_path(source, &file)))?;

    let entry = entry(spec, &module)?;
    let constants = constants(spec, &module).map_err(wrong)?;
    let chosen = Some((ShaderStage::Compute, entry));
    let (module, info) =
        process_overrides(&module, &info, chosen, &constants).map_err(|error| {
            wrong(match error {
                PipelineConstantError::ValidationError(error) => {
                    error.emit_to_string_with_path(source, &file)
                }
                error => format!("{file}: {error}"),
            })
        })?;

    let pipeline =
        spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: entry.to_owned() };
    spv::write_vec(&module, &info, &writer(options), Some(&pipeline))
        .map_err(|error| wrong(format!("{file}: {error}")))
}

fn extension(language: Language) -> &'static str {
    if language == Language::Wgsl { "wgsl" } else { "comp" }
}

fn parse(spec: &KernelSpec, source: &str, file: &str) -> Result<Module, BackendError> {
    match spec.language() {
        #[cfg(feature = "wgsl")]
        Language::Wgsl => naga::front::wgsl::parse_str(source).map_err(|error| {
            BackendError::Compile { log: error.emit_to_string_with_path(source, file) }
        }),
        #[cfg(feature = "glsl")]
        Language::Glsl => {
            let mut options = naga::front::glsl::Options::from(ShaderStage::Compute);
            options.defines.extend(spec.defines().iter().cloned());
            naga::front::glsl::Frontend::default().parse(&options, source).map_err(|error| {
                BackendError::Compile { log: error.emit_to_string_with_path(source, file) }
            })
        }
        _ => Err(compile::not_taken(spec)),
    }
}

/// The entry point that is asked for, or the only one.
fn entry<'a>(spec: &KernelSpec, module: &'a Module) -> Result<&'a str, BackendError> {
    let all: Vec<_> = module
        .entry_points
        .iter()
        .filter(|entry| entry.stage == ShaderStage::Compute)
        .map(|entry| entry.name.as_str())
        .collect();
    compile::choose_entry(spec, &all)
}

/// The spec's constants as naga wants them: by number where the override has one, else by name.
fn constants(spec: &KernelSpec, module: &Module) -> Result<PipelineConstants, String> {
    let mut constants = PipelineConstants::default();
    for (name, value) in spec.constants() {
        let number = name.parse().ok();
        let mut all = module.overrides.iter().map(|(_, it)| it);
        let found = all
            .find(|it| it.name.as_deref() == Some(name) || (number.is_some() && it.id == number));
        let Some(found) = found else {
            let there: Vec<_> = module.overrides.iter().map(|(_, it)| shown(it)).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            return Err(format!(
                "there is no specialization constant `{name}`; there are: {there}"
            ));
        };
        let value = number_of(found, module, value).map_err(|expected| {
            format!("the specialization constant `{name}` is {expected}, not `{value}`")
        })?;
        if constants.insert(key(found), value).is_some() {
            return Err(format!("the specialization constant {} has two values", shown(found)));
        }
    }
    Ok(constants)
}

fn key(it: &Override) -> String {
    match (it.id, &it.name) {
        (Some(id), _) => id.to_string(),
        (None, name) => name.clone().unwrap_or_default(),
    }
}

fn shown(it: &Override) -> String {
    match (it.id, &it.name) {
        (Some(id), Some(name)) => format!("{id} ({name})"),
        _ => key(it),
    }
}

/// A value as the number that naga takes, or what it should have been.
fn number_of(it: &Override, module: &Module, text: &str) -> Result<f64, String> {
    let kind = match module.types[it.ty].inner {
        TypeInner::Scalar(scalar) => scalar.kind,
        _ => return Err("of no type that can be specialized".to_owned()),
    };
    match kind {
        ScalarKind::Bool => match text {
            "true" | "1" => Ok(1.0),
            "false" | "0" => Ok(0.0),
            _ => Err("`true` or `false`".to_owned()),
        },
        ScalarKind::Sint | ScalarKind::Uint => {
            let value = spirv::integer(text).ok_or("an integer")?;
            if value.unsigned_abs() > EXACT {
                return Err("an integer of up to 53 bits".to_owned());
            }
            Ok(value as f64)
        }
        _ => text.parse().map_err(|_| "a number".to_owned()),
    }
}

fn writer(options: Options) -> spv::Options<'static> {
    let policy =
        if options.checks { BoundsCheckPolicy::Restrict } else { BoundsCheckPolicy::Unchecked };
    spv::Options {
        // What every device of Vulkan 1.1 takes, so that the code is the same for all.
        lang_version: (1, 3),
        // The default depends on how this crate was built, and code must not.
        flags: spv::WriterFlags::empty(),
        bounds_check_policies: BoundsCheckPolicies {
            index: policy,
            buffer: policy,
            image_load: policy,
            binding_array: policy,
        },
        // For what goes from stage to stage, and here is one.
        use_storage_input_output_16: false,
        force_loop_bounding: options.checks,
        emit_int_div_checks: options.checks,
        zero_initialize_workgroup_memory: if options.zero_workgroup {
            spv::ZeroInitializeWorkgroupMemoryMode::Polyfill
        } else {
            spv::ZeroInitializeWorkgroupMemoryMode::None
        },
        ..spv::Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "wgsl")]
    #[test]
    fn the_probe_is_translated() {
        let source = include_str!("probe.wgsl");
        let spec = KernelSpec::builder("probe", Language::Wgsl).source(source).build().unwrap();
        to_spirv(&spec, Options { checks: true, zero_workgroup: true })
            .unwrap_or_else(|error| panic!("{error}"));
        let words = probe().unwrap();
        assert!(words.len() > 500, "{} words", words.len());
        assert_eq!(probe().unwrap(), words);
        assert!(translator().starts_with(&format!("{NAGA} (")), "{}", translator());
    }

    #[test]
    fn the_key_says_which_naga_it_is() {
        let lock = include_str!("../../../Cargo.lock");
        let locked = lock
            .split("[[package]]")
            .find(|package| package.contains("\nname = \"naga\"\n"))
            .and_then(|package| package.lines().find_map(|line| line.strip_prefix("version = ")));
        assert_eq!(Some(NAGA.replace("naga ", "\"") + "\""), locked.map(str::to_owned));
    }
}
