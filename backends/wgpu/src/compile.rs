//! From a spec to pipelines.

use grainstore_runtime::{BackendError, KernelSpec, Language};
use wgpu::naga::ShaderStage;
use wgpu::{
    ComputePipelineDescriptor, Device, FragmentState, PipelineCache, PipelineCompilationOptions,
    PipelineLayout, RenderPipelineDescriptor, ShaderModule, ShaderModuleDescriptor, ShaderSource,
    VertexState,
};

use crate::module::Pipelines;
use crate::options::{self, Options};
use crate::{RenderState, constants, entries, log, scope};

/// What all pipelines of a spec are made with.
struct Parts<'a> {
    device: &'a Device,
    spec: &'a KernelSpec,
    shader: ShaderModule,
    layout: Option<PipelineLayout>,
    compilation: PipelineCompilationOptions<'a>,
    cache: Option<&'a PipelineCache>,
}

/// Makes the pipelines of a spec, with whatever of them is in the cache.
pub(crate) fn compile(
    device: &Device,
    spec: &KernelSpec,
    cache: Option<&PipelineCache>,
) -> Result<Pipelines, BackendError> {
    let source = check(spec)?;
    let Options { render, layout, zero_workgroup } = options::check(spec)?;
    let constants = constants::of(spec)?;
    let layout = layout.map(|layout| layout.create(device, spec.name())).transpose()?;
    let compilation = PipelineCompilationOptions {
        constants: &constants,
        zero_initialize_workgroup_memory: zero_workgroup,
    };
    let shader = shader(device, spec, source)?;
    let parts = Parts { device, spec, shader, layout, compilation, cache };
    match render {
        Some(state) => parts.render(source, &state),
        None => parts.compute(source),
    }
}

/// Refuses what this backend cannot do.
fn check(spec: &KernelSpec) -> Result<&str, BackendError> {
    if spec.language() != Language::Wgsl {
        return Err(BackendError::wrong_language(spec, "the wgpu backend takes WGSL"));
    }
    if let Some((define, _)) = spec.defines().first() {
        let hint = "WGSL has no preprocessor; declare it as an `override` and give it as a \
                    constant, or put the value into the source";
        return Err(BackendError::unfit(spec, format!("the define `{define}`"), hint));
    }
    if let Some((header, _)) = spec.headers().first() {
        let hint = "WGSL has no `#include`; put the text in front of the source";
        return Err(BackendError::unfit(spec, format!("the header `{header}`"), hint));
    }
    // A spec's text is UTF-8.
    std::str::from_utf8(spec.source())
        .map_err(|_| BackendError::unfit(spec, "the source", "WGSL is UTF-8"))
}

fn shader(device: &Device, spec: &KernelSpec, source: &str) -> Result<ShaderModule, BackendError> {
    let label = log::file(spec);
    let (shader, error) = scope::caught(device, || {
        device.create_shader_module(ShaderModuleDescriptor {
            label: Some(&label),
            source: ShaderSource::Wgsl(source.into()),
        })
    });
    match error {
        None => Ok(shader),
        Some(error) => {
            let info = pollster::block_on(shader.get_compilation_info());
            Err(log::shader(spec, &error, &info))
        }
    }
}

impl Parts<'_> {
    fn compute(&self, source: &str) -> Result<Pipelines, BackendError> {
        let functions = match self.spec.entry() {
            Some(entry) => vec![entry.to_owned()],
            None => entries::of_stage(source, ShaderStage::Compute),
        };
        if functions.is_empty() {
            let what = format!("kernel `{}` has no `@compute` function", self.spec.name());
            let hint = "mark one, or say with a `RenderState` that it is a render pipeline";
            return Err(BackendError::unsupported(what, hint));
        }
        let mut pipelines = Vec::with_capacity(functions.len());
        for function in functions {
            let pipeline = self.made(
                || {
                    self.device.create_compute_pipeline(&ComputePipelineDescriptor {
                        label: Some(self.spec.name()),
                        layout: self.layout.as_ref(),
                        module: &self.shader,
                        entry_point: Some(&function),
                        compilation_options: self.compilation.clone(),
                        cache: self.cache,
                    })
                },
                |pipeline| drop(pipeline.get_bind_group_layout(0)),
                |error| self.refusal(source, &[(ShaderStage::Compute, &function)], error),
            )?;
            pipelines.push((function, pipeline));
        }
        Ok(Pipelines::Compute(pipelines))
    }

    fn render(&self, source: &str, state: &RenderState) -> Result<Pipelines, BackendError> {
        if let Some(entry) = self.spec.entry() {
            let what = format!("the entry point `{entry}` of kernel `{}`", self.spec.name());
            let hint = "a render pipeline has two functions; its `RenderState` names them";
            return Err(BackendError::unsupported(what, hint));
        }
        let fragment = state.fragment.as_deref().map(|function| FragmentState {
            module: &self.shader,
            entry_point: Some(function),
            compilation_options: self.compilation.clone(),
            targets: &state.targets,
        });
        let pipeline = self.made(
            || {
                self.device.create_render_pipeline(&RenderPipelineDescriptor {
                    label: Some(self.spec.name()),
                    layout: self.layout.as_ref(),
                    vertex: VertexState {
                        module: &self.shader,
                        entry_point: Some(&state.vertex),
                        compilation_options: self.compilation.clone(),
                        buffers: &state.vertex_buffers(),
                    },
                    primitive: state.primitive,
                    depth_stencil: state.depth_stencil.clone(),
                    multisample: state.multisample,
                    fragment,
                    multiview_mask: state.multiview_mask,
                    cache: self.cache,
                })
            },
            |pipeline| drop(pipeline.get_bind_group_layout(0)),
            |error| {
                let vertex = (ShaderStage::Vertex, state.vertex.as_str());
                let fragment = state.fragment.as_deref().map(|name| (ShaderStage::Fragment, name));
                let functions: Vec<_> = [vertex].into_iter().chain(fragment).collect();
                self.refusal(source, &functions, error)
            },
        )?;
        Ok(Pipelines::Render(pipeline))
    }

    /// A pipeline that can be used, or why there is none.
    fn made<T>(
        &self,
        create: impl FnOnce() -> T,
        touch: impl FnOnce(&T),
        refusal: impl FnOnce(&wgpu::Error) -> BackendError,
    ) -> Result<T, BackendError> {
        let (pipeline, error) = scope::caught(self.device, create);
        if let Some(error) = error {
            return Err(refusal(&error));
        }
        // On a lost device wgpu makes a pipeline that is none, and says nothing: that goes to the
        // application's callback, which is not ours to replace. But such a pipeline has no layout
        // to give, not even the empty one that any other gives.
        match scope::caught(self.device, || touch(&pipeline)).1 {
            None => Ok(pipeline),
            Some(_) => {
                let message = "wgpu makes no pipelines on it any more; tell the runtime with \
                               `device_lost`, then give another with `replace_device`, unless the \
                               backend has a function that makes one";
                Err(BackendError::DeviceLost { message: message.into() })
            }
        }
    }

    /// Why there is no pipeline of these functions: one is not there, or wgpu says it.
    fn refusal(
        &self,
        source: &str,
        functions: &[(ShaderStage, &str)],
        error: &wgpu::Error,
    ) -> BackendError {
        for (stage, function) in functions {
            let available = entries::of_stage(source, *stage);
            if !available.iter().any(|name| name == function) {
                return BackendError::NoEntryPoint { entry: (*function).to_owned(), available };
            }
        }
        let names: Vec<_> = functions.iter().map(|(_, name)| *name).collect();
        log::pipeline(self.spec, &names.join("`, `"), error)
    }
}
