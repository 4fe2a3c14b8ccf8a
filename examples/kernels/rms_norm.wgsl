// Each row divided by its root mean square, then scaled by the weights; with UNIT_OFFSET by one plus
// the weights, as models do whose weights are trained around zero.
// One workgroup of BLOCK invocations a row; BLOCK must be a power of two: the tree halves it.

override BLOCK: u32 = 128;
override UNIT_OFFSET: bool = false;

struct Arguments {
    columns: u32,
    epsilon: f32,
}

@group(0) @binding(0) var<uniform> arguments: Arguments;
@group(0) @binding(1) var<storage, read> in: array<f32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

var<workgroup> squares: array<f32, BLOCK>;

@compute @workgroup_size(BLOCK)
fn rms_norm(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3u,
) {
    let columns = arguments.columns;
    let row = group.x * columns;

    var sum = 0.0;
    for (var i = lane; i < columns; i += BLOCK) {
        sum += in[row + i] * in[row + i];
    }
    squares[lane] = sum;
    for (var width = BLOCK / 2; width > 0; width /= 2) {
        workgroupBarrier();
        if lane < width {
            squares[lane] += squares[lane + width];
        }
    }
    workgroupBarrier();

    let scale = inverseSqrt(squares[0] / f32(columns) + arguments.epsilon);
    let offset = select(0.0, 1.0, UNIT_OFFSET);
    for (var i = lane; i < columns; i += BLOCK) {
        out[row + i] = in[row + i] * scale * (weights[i] + offset);
    }
}
