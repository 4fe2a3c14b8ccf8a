// y = a x + y. One invocation takes VECTOR elements (1, 2, 4, 8 or 16).
// Workgroups: enough for n / VECTOR invocations.
//
// WGSL has no preprocessor: what is a define in the other languages is an `override` here. And it
// has no arguments: numbers come in a uniform buffer, in their order, and behind it the buffers.

override VECTOR: u32 = 4;

struct Arguments {
    n: u32,
    a: f32,
}

@group(0) @binding(0) var<uniform> arguments: Arguments;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    let first = id.x * VECTOR;
    let end = min(first + VECTOR, arguments.n);
    for (var i = first; i < end; i++) {
        y[i] += arguments.a * x[i];
    }
}
