//! Which options may be in a spec: what a pipeline is made with beside its shader.
//!
//! They are text, so that they are in the key and in manifests, and say all there is to say: a
//! native layout of the application's own could not be told from another.

use grainstore_runtime::{BackendError, KernelSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Layout, RenderState};

/// How the option of a [`RenderState`] begins.
pub(crate) const RENDER: &str = "--render=";

/// How the option of a [`Layout`] begins.
pub(crate) const LAYOUT: &str = "--layout=";

/// A spec's options, read.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) render: Option<RenderState>,
    pub(crate) layout: Option<Layout>,
    /// Workgroup memory is zero at the start, as WGSL promises. That costs each workgroup some time.
    pub(crate) zero_workgroup: bool,
}

/// The text of an option that has a value.
pub(crate) fn text(option: &str, value: &impl Serialize) -> String {
    // JSON has a form for all that is in these values, so the empty text never comes of it; and it
    // would be refused, not misread.
    format!("{option}{}", serde_json::to_string(value).unwrap_or_default())
}

/// Reads the options of a spec, or says which one is refused, and why. Those that need no value are
/// named as the Vulkan backend names them, so that one manifest does for both.
pub(crate) fn check(spec: &KernelSpec) -> Result<Options, BackendError> {
    let mut options = Options { render: None, layout: None, zero_workgroup: true };
    for option in spec.options() {
        let twice = if let Some(json) = option.strip_prefix(RENDER) {
            options.render.replace(value(spec, RENDER, json)?).is_some()
        } else if let Some(json) = option.strip_prefix(LAYOUT) {
            options.layout.replace(value(spec, LAYOUT, json)?).is_some()
        } else {
            match option.as_str() {
                "--zero-workgroup-memory" => options.zero_workgroup = true,
                "--no-zero-workgroup-memory" => options.zero_workgroup = false,
                "--checked" => {}
                "--unchecked" => {
                    return Err(BackendError::refused_option(
                        spec.name(),
                        option,
                        "wgpu checks every index",
                    ));
                }
                _ => {
                    let hint = "the wgpu backend knows what a `RenderState` and a `Layout` make \
                                (--render=, --layout=), --checked, --zero-workgroup-memory and \
                                --no-zero-workgroup-memory";
                    return Err(BackendError::refused_option(spec.name(), option, hint));
                }
            }
            false
        };
        if twice {
            return Err(BackendError::refused_option(
                spec.name(),
                option,
                "it is the second of its kind; keep one",
            ));
        }
    }
    Ok(options)
}

fn value<T: DeserializeOwned>(
    spec: &KernelSpec,
    option: &str,
    json: &str,
) -> Result<T, BackendError> {
    serde_json::from_str(json).map_err(|error| {
        let hint = format!("{error}; make it with this crate's type of that name, for this wgpu");
        BackendError::refused_option(spec.name(), option, hint)
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use grainstore_runtime::{KernelSpecBuilder, Language};
    use wgpu::{
        BindGroupLayoutEntry, BindingType, BlendState, BufferBindingType, ColorTargetState,
        ColorWrites, CompareFunction, DepthBiasState, DepthStencilState, Face, MultisampleState,
        PrimitiveState, PrimitiveTopology, ShaderStages, StencilState, TextureFormat,
        VertexStepMode, vertex_attr_array,
    };

    use super::*;

    fn spec(options: &[String]) -> KernelSpec {
        let spec = KernelSpec::builder("k", Language::Wgsl).source("x");
        options.iter().fold(spec, KernelSpecBuilder::option).build().unwrap()
    }

    /// With something in every field.
    fn state() -> RenderState {
        RenderState::new("v")
            .buffer(12, VertexStepMode::Instance, &vertex_attr_array![0 => Float32x2, 1 => Uint32])
            .fragment("f")
            .no_target()
            .target(ColorTargetState {
                format: TextureFormat::Bgra8UnormSrgb,
                blend: Some(BlendState::ALPHA_BLENDING),
                write_mask: ColorWrites::RED | ColorWrites::ALPHA,
            })
            .primitive(PrimitiveState {
                topology: PrimitiveTopology::LineStrip,
                cull_mode: Some(Face::Back),
                ..PrimitiveState::default()
            })
            .depth_stencil(DepthStencilState {
                format: TextureFormat::Depth24Plus,
                depth_write_enabled: Some(true),
                depth_compare: Some(CompareFunction::Less),
                stencil: StencilState::default(),
                bias: DepthBiasState { constant: 1, slope_scale: 0.1, clamp: 2.5 },
            })
            .multisample(MultisampleState { count: 4, ..MultisampleState::default() })
            .multiview(NonZeroU32::new(3).unwrap())
    }

    fn layout() -> Layout {
        let entry = |binding, ty| BindGroupLayoutEntry {
            binding,
            visibility: ShaderStages::COMPUTE | ShaderStages::FRAGMENT,
            ty,
            count: NonZeroU32::new(binding),
        };
        let buffer = BindingType::Buffer {
            ty: BufferBindingType::Storage { read_only: true },
            has_dynamic_offset: true,
            min_binding_size: std::num::NonZeroU64::new(u64::MAX),
        };
        let texture = BindingType::StorageTexture {
            access: wgpu::StorageTextureAccess::WriteOnly,
            format: TextureFormat::R32Float,
            view_dimension: wgpu::TextureViewDimension::D2Array,
        };
        Layout::new().group(&[entry(0, buffer), entry(7, texture)]).no_group().immediate_size(16)
    }

    #[test]
    fn what_is_written_is_read() {
        let last = "--no-zero-workgroup-memory".to_owned();
        let spec = spec(&[state().into(), layout().into(), last]);
        let options = check(&spec).unwrap();
        assert_eq!(options.render.unwrap(), state());
        assert_eq!(options.layout.unwrap(), layout());
        assert!(!options.zero_workgroup);

        let options = check(&self::spec(&[])).unwrap();
        assert!(options.render.is_none() && options.layout.is_none());
        assert!(options.zero_workgroup);
    }

    #[test]
    fn equal_states_have_equal_text() {
        assert_eq!(String::from(state()), String::from(state()));
        assert_ne!(String::from(state()), String::from(state().fragment("g")));
    }

    #[test]
    fn a_manifest_may_leave_out_the_usual() {
        let spec = spec(&[
            r#"--render={"vertex": "v", "fragment": "f", "targets": [{"format": "rgba8unorm", "writeMask": 15}]}"#
                .to_owned(),
        ]);
        let state = check(&spec).unwrap().render.unwrap();
        let target = TextureFormat::Rgba8Unorm.into();
        assert_eq!(state, RenderState::new("v").fragment("f").target(target));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (option, advice) in [
            ("-O3", "knows what a `RenderState`"),
            ("--render", "knows what a `RenderState`"),
            ("--unchecked", "wgpu checks every index"),
            ("--render={}", "missing field `vertex`"),
            (r#"--render={"vertex":"v","depth":1}"#, "unknown field `depth`"),
            ("--layout=", "EOF"),
        ] {
            let error = check(&spec(&[option.to_owned()])).expect_err(option).to_string();
            assert!(error.contains("of kernel `k` is refused"), "{error}");
            assert!(error.contains(advice), "{option}: {error}");
        }
        let twice = check(&spec(&[state().into(), state().into()])).unwrap_err().to_string();
        assert!(twice.contains("second of its kind"), "{twice}");
    }
}
