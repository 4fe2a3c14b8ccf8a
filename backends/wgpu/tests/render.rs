//! Render pipelines: described by the spec, drawn with, and refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{DEVICE, on_wgpu, spec};
use grainstore_runtime::{Backend, BackendError};
use grainstore_wgpu::{Pipelines, RenderState, WgpuModule};
use wgpu::util::{BufferInitDescriptor, DeviceExt};
use wgpu::{
    BufferDescriptor, BufferUsages, Color, Extent3d, LoadOp, Operations, PollType,
    RenderPassColorAttachment, RenderPassDescriptor, StoreOp, TexelCopyBufferInfo,
    TexelCopyBufferLayout, TextureDescriptor, TextureDimension, TextureFormat, TextureUsages,
    VertexStepMode, vertex_attr_array,
};

const SHADER: &str = "\
override red: f32 = 1;
@vertex fn place(@location(0) at: vec2f) -> @builtin(position) vec4f { return vec4f(at, 0, 1); }
@fragment fn paint() -> @location(0) vec4f { return vec4f(red, 0, 1, 1); }
";

fn state() -> RenderState {
    RenderState::new("place")
        .buffer(8, VertexStepMode::Vertex, &vertex_attr_array![0 => Float32x2])
        .fragment("paint")
        .target(TextureFormat::Rgba8Unorm.into())
}

/// The four pixels of a picture on which one triangle was drawn that covers all of it.
fn draw(module: &WgpuModule) -> Vec<[u8; 4]> {
    let (device, queue) = (module.device(), module.queue());
    let corners: [f32; 6] = [-1.0, -1.0, 3.0, -1.0, -1.0, 3.0];
    let bytes: Vec<u8> = corners.iter().flat_map(|number| number.to_le_bytes()).collect();
    let vertices = device.create_buffer_init(&BufferInitDescriptor {
        label: None,
        contents: &bytes,
        usage: BufferUsages::VERTEX,
    });
    let size = Extent3d { width: 2, height: 2, depth_or_array_layers: 1 };
    let texture = device.create_texture(&TextureDescriptor {
        label: None,
        size,
        mip_level_count: 1,
        sample_count: 1,
        dimension: TextureDimension::D2,
        format: TextureFormat::Rgba8Unorm,
        usage: TextureUsages::RENDER_ATTACHMENT | TextureUsages::COPY_SRC,
        view_formats: &[],
    });
    // Rows of a copy begin at multiples of 256 bytes.
    let result = device.create_buffer(&BufferDescriptor {
        label: None,
        size: 512,
        usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let view = texture.create_view(&Default::default());
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_render_pass(&RenderPassDescriptor {
            color_attachments: &[Some(RenderPassColorAttachment {
                view: &view,
                depth_slice: None,
                resolve_target: None,
                ops: Operations { load: LoadOp::Clear(Color::BLACK), store: StoreOp::Store },
            })],
            ..Default::default()
        });
        pass.set_pipeline(module.render().unwrap());
        pass.set_vertex_buffer(0, vertices.slice(..));
        pass.draw(0..3, 0..1);
    }
    encoder.copy_texture_to_buffer(
        texture.as_image_copy(),
        TexelCopyBufferInfo {
            buffer: &result,
            layout: TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(256),
                rows_per_image: None,
            },
        },
        size,
    );
    queue.submit([encoder.finish()]);
    result.slice(..).map_async(wgpu::MapMode::Read, Result::unwrap);
    device.poll(PollType::wait_indefinitely()).unwrap();
    let bytes = result.slice(..).get_mapped_range().unwrap();
    [0, 4, 256, 260].map(|at| bytes[at..at + 4].try_into().unwrap()).to_vec()
}

#[test]
fn a_render_pipeline_draws() {
    on_wgpu("a_render_pipeline_draws", |wgpu, _| {
        for (red, expected) in [("1", 255), ("0", 0)] {
            let spec = spec(SHADER).option(state()).constant("red", red).build().unwrap();
            let (module, _) = wgpu.build(&DEVICE, &spec).unwrap();
            assert!(matches!(module.pipelines(), Pipelines::Render(_)));
            assert_eq!(draw(&module), [[expected, 0, 255, 255]; 4]);
            let error = module.compute("place").unwrap_err();
            assert!(matches!(error, BackendError::NoEntryPoint { .. }), "{error}");
        }
    });
}

#[test]
fn what_is_wrong_with_a_render_pipeline_is_said() {
    on_wgpu("what_is_wrong_with_a_render_pipeline_is_said", |wgpu, _| {
        let error = |state: RenderState| {
            wgpu.build(&DEVICE, &spec(SHADER).option(state).build().unwrap()).unwrap_err()
        };
        let missing = error(RenderState::new("paint"));
        assert_eq!(missing.to_string(), "there is no entry point `paint`; there are: place");
        let missing = error(state().fragment("point"));
        assert_eq!(missing.to_string(), "there is no entry point `point`; there are: paint");

        let integers = RenderState::new("place")
            .buffer(8, VertexStepMode::Vertex, &vertex_attr_array![0 => Float32x2])
            .fragment("paint")
            .target(TextureFormat::Rgba8Uint.into());
        let mismatch = error(integers);
        assert!(matches!(mismatch, BackendError::Compile { .. }), "{mismatch}");
        assert!(mismatch.to_string().contains("kernel.wgsl: in `place`, `paint`: "), "{mismatch}");

        let both = spec(SHADER).option(state()).entry("place").build().unwrap();
        let both = wgpu.build(&DEVICE, &both).unwrap_err();
        assert!(matches!(both, BackendError::Unsupported { .. }), "{both}");
        assert!(both.to_string().contains("its `RenderState` names them"), "{both}");
    });
}
