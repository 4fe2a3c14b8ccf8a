//! A pipeline layout of one's own, as an option of a spec.

use grainstore_runtime::BackendError;
use serde::{Deserialize, Serialize};
use wgpu::{
    BindGroupLayout, BindGroupLayoutDescriptor, BindGroupLayoutEntry, Device,
    PipelineLayoutDescriptor,
};

use crate::{options, scope};

/// The bindings of a pipeline, where they are not to be derived from the shader.
///
/// Bind groups that were made with a layout of the same entries, your own or another pipeline's, fit
/// every pipeline that says its layout. Those of a derived one fit that pipeline alone.
///
/// It goes into the spec as an option, and with that into the key.
///
/// ```
/// use grainstore_runtime::{KernelSpec, Language};
/// use grainstore_wgpu::Layout;
/// use wgpu::{BindGroupLayoutEntry, BindingType, BufferBindingType, ShaderStages};
///
/// let numbers = BindGroupLayoutEntry {
///     binding: 0,
///     visibility: ShaderStages::COMPUTE,
///     ty: BindingType::Buffer {
///         ty: BufferBindingType::Storage { read_only: false },
///         has_dynamic_offset: true,
///         min_binding_size: None,
///     },
///     count: None,
/// };
/// let spec = KernelSpec::builder("double", Language::Wgsl)
///     .source("@group(0) @binding(0) var<storage, read_write> x: array<f32>; \
///              @compute @workgroup_size(1) fn twice() { x[0] *= 2.0; }")
///     .entry("twice")
///     .option(Layout::new().group(&[numbers]))
///     .build()?;
/// # Ok::<(), grainstore_runtime::SpecError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    groups: Vec<Option<Vec<BindGroupLayoutEntry>>>,
    #[serde(default)]
    immediate_size: u32,
}

impl Layout {
    /// Without any binding.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more bind group, behind the others.
    #[must_use]
    pub fn group(mut self, entries: &[BindGroupLayoutEntry]) -> Self {
        self.groups.push(Some(entries.to_vec()));
        self
    }

    /// A gap among the bind groups.
    #[must_use]
    pub fn no_group(mut self) -> Self {
        self.groups.push(None);
        self
    }

    /// So many bytes of immediates (`var<immediate>`).
    #[must_use]
    pub fn immediate_size(mut self, bytes: u32) -> Self {
        self.immediate_size = bytes;
        self
    }

    /// The native layout.
    pub(crate) fn create(
        &self,
        device: &Device,
        kernel: &str,
    ) -> Result<wgpu::PipelineLayout, BackendError> {
        let label = Some(kernel);
        let (layout, error) = scope::caught(device, || {
            let create = |entries: &Vec<BindGroupLayoutEntry>| {
                device.create_bind_group_layout(&BindGroupLayoutDescriptor { label, entries })
            };
            let groups: Vec<Option<BindGroupLayout>> =
                self.groups.iter().map(|group| group.as_ref().map(create)).collect();
            let groups: Vec<_> = groups.iter().map(Option::as_ref).collect();
            device.create_pipeline_layout(&PipelineLayoutDescriptor {
                label,
                bind_group_layouts: &groups,
                immediate_size: self.immediate_size,
            })
        });
        match error {
            None => Ok(layout),
            Some(error) => {
                Err(BackendError::failed(format!("the layout of kernel `{kernel}`"), error))
            }
        }
    }
}

impl From<Layout> for String {
    /// The option's text: `--layout=` and the layout as JSON.
    fn from(layout: Layout) -> Self {
        options::text(options::LAYOUT, &layout)
    }
}
