//! The functions of a shader that a pipeline can begin with.

use wgpu::naga::{ShaderStage, front::wgsl};

/// Their names, in the order of the source. None where the source does not parse.
pub(crate) fn of_stage(source: &str, stage: ShaderStage) -> Vec<String> {
    let module = wgsl::parse_str(source).unwrap_or_default();
    let points = module.entry_points.into_iter().filter(|point| point.stage == stage);
    points.map(|point| point.name).collect()
}
