//! What a render pipeline needs beside its shader, as an option of a spec.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use wgpu::{
    ColorTargetState, DepthStencilState, MultisampleState, PrimitiveState, VertexAttribute,
    VertexBufferLayout, VertexStepMode,
};

use crate::options;

/// Makes a spec one of a render pipeline: its functions, and the state that is compiled in.
///
/// It goes into the spec as an option, and with that into the key.
///
/// ```
/// use grainstore_runtime::{KernelSpec, Language};
/// use grainstore_wgpu::RenderState;
/// use wgpu::{TextureFormat, VertexStepMode, vertex_attr_array};
///
/// # const SHADER: &str = "@vertex fn place(@location(0) at: vec2f) -> @builtin(position) vec4f \
/// #     { return vec4f(at, 0, 1); } \
/// #     @fragment fn paint() -> @location(0) vec4f { return vec4f(1); }";
/// let state = RenderState::new("place")
///     .buffer(8, VertexStepMode::Vertex, &vertex_attr_array![0 => Float32x2])
///     .fragment("paint")
///     .target(TextureFormat::Rgba8Unorm.into());
/// let spec = KernelSpec::builder("triangle", Language::Wgsl).source(SHADER).option(state).build()?;
/// # Ok::<(), grainstore_runtime::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenderState {
    pub(crate) vertex: String,
    #[serde(default)]
    buffers: Vec<VertexBuffer>,
    #[serde(default)]
    pub(crate) fragment: Option<String>,
    #[serde(default)]
    pub(crate) targets: Vec<Option<ColorTargetState>>,
    #[serde(default)]
    pub(crate) primitive: PrimitiveState,
    #[serde(default)]
    pub(crate) depth_stencil: Option<DepthStencilState>,
    #[serde(default)]
    pub(crate) multisample: MultisampleState,
    #[serde(default)]
    pub(crate) multiview_mask: Option<NonZeroU32>,
}

/// A [`VertexBufferLayout`] that owns its attributes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VertexBuffer {
    stride: u64,
    #[serde(default)]
    step: VertexStepMode,
    attributes: Vec<VertexAttribute>,
}

impl RenderState {
    /// With this vertex function, and all else as wgpu has it by default: triangles, no depth, one
    /// sample. The functions are those of the spec's one source.
    #[must_use]
    pub fn new(vertex: impl Into<String>) -> Self {
        Self {
            vertex: vertex.into(),
            buffers: Vec::new(),
            fragment: None,
            targets: Vec::new(),
            primitive: PrimitiveState::default(),
            depth_stencil: None,
            multisample: MultisampleState::default(),
            multiview_mask: None,
        }
    }

    /// One more vertex buffer, behind the others.
    #[must_use]
    pub fn buffer(
        mut self,
        stride: u64,
        step: VertexStepMode,
        attributes: &[VertexAttribute],
    ) -> Self {
        self.buffers.push(VertexBuffer { stride, step, attributes: attributes.to_vec() });
        self
    }

    /// The fragment function.
    #[must_use]
    pub fn fragment(mut self, function: impl Into<String>) -> Self {
        self.fragment = Some(function.into());
        self
    }

    /// One more colour target, behind the others.
    #[must_use]
    pub fn target(mut self, target: ColorTargetState) -> Self {
        self.targets.push(Some(target));
        self
    }

    /// A gap among the colour targets: the fragment function writes nothing there.
    #[must_use]
    pub fn no_target(mut self) -> Self {
        self.targets.push(None);
        self
    }

    /// Topology, culling and their like.
    #[must_use]
    pub fn primitive(mut self, primitive: PrimitiveState) -> Self {
        self.primitive = primitive;
        self
    }

    /// Depth and stencil tests.
    #[must_use]
    pub fn depth_stencil(mut self, depth_stencil: DepthStencilState) -> Self {
        self.depth_stencil = Some(depth_stencil);
        self
    }

    /// Samples of a pixel.
    #[must_use]
    pub fn multisample(mut self, multisample: MultisampleState) -> Self {
        self.multisample = multisample;
        self
    }

    /// The layers that one pass draws to.
    #[must_use]
    pub fn multiview(mut self, mask: NonZeroU32) -> Self {
        self.multiview_mask = Some(mask);
        self
    }

    pub(crate) fn vertex_buffers(&self) -> Vec<Option<VertexBufferLayout<'_>>> {
        let layouts = self.buffers.iter().map(|buffer| VertexBufferLayout {
            array_stride: buffer.stride,
            step_mode: buffer.step,
            attributes: &buffer.attributes,
        });
        layouts.map(Some).collect()
    }
}

impl From<RenderState> for String {
    /// The option's text: `--render=` and the state as JSON.
    fn from(state: RenderState) -> Self {
        options::text(options::RENDER, &state)
    }
}
