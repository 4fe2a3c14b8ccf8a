//! The pipelines of a spec, and the device that they are on.

use grainstore_runtime::BackendError;
use grainstore_runtime::parts::{Counted, Live};
use wgpu::{ComputePipeline, Device, Queue, RenderPipeline};

use crate::context::Held;

/// What a spec was made into.
#[derive(Clone, Debug)]
pub enum Pipelines {
    /// A pipeline for each function: the entry point alone, or without one all that are `@compute`.
    Compute(Vec<(String, ComputePipeline)>),
    /// The one that a [`RenderState`](crate::RenderState) describes.
    Render(RenderPipeline),
}

impl Pipelines {
    fn count(&self) -> usize {
        match self {
            Self::Compute(pipelines) => pipelines.len(),
            Self::Render(_) => 1,
        }
    }
}

/// Pipelines on their device. It keeps the device alive.
#[derive(Debug)]
pub struct WgpuModule {
    pipelines: Pipelines,
    held: Held,
    _counted: Counted,
}

impl WgpuModule {
    pub(crate) fn new(pipelines: Pipelines, held: Held, live: &Live) -> Self {
        let _counted = live.hold(pipelines.count());
        Self { pipelines, held, _counted }
    }

    /// What there is, whichever kind it is.
    #[must_use]
    pub fn pipelines(&self) -> &Pipelines {
        &self.pipelines
    }

    /// The compute pipeline that begins with this function.
    ///
    /// # Errors
    /// [`BackendError::NoEntryPoint`] with the names that are there; none is in a render pipeline.
    pub fn compute(&self, function: &str) -> Result<&ComputePipeline, BackendError> {
        let there: &[_] = match &self.pipelines {
            Pipelines::Compute(pipelines) => pipelines,
            Pipelines::Render(_) => &[],
        };
        let found = there.iter().find(|(name, _)| name == function);
        found.map(|(_, pipeline)| pipeline).ok_or_else(|| BackendError::NoEntryPoint {
            entry: function.to_owned(),
            available: there.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    /// The render pipeline, if the spec described one.
    #[must_use]
    pub fn render(&self) -> Option<&RenderPipeline> {
        match &self.pipelines {
            Pipelines::Render(pipeline) => Some(pipeline),
            Pipelines::Compute(_) => None,
        }
    }

    /// The device it was made for, for buffers and bind groups.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.held.device
    }

    /// The device's queue.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.held.queue
    }
}
