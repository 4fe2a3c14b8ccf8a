// A 2-D convolution (as networks call it: the filter is not flipped) with bias, padded with zeros by
// half the filter. Row-major, channels first:
//
//   in       channels x height x width
//   weights  filters x channels x FILTER x FILTER, FILTER odd
//   bias     filters
//   out      filters x ceil(height / STRIDE) x ceil(width / STRIDE)
//
// A workgroup computes a tile of TILE x TILE outputs of one filter. Channel by channel it brings the
// input under the tile, its halo included, and the filter's weights into its memory.
// Workgroups: one for each tile over out's columns and rows; filters.

override FILTER: u32 = 3;
override STRIDE: u32 = 1;
override TILE: u32 = 16;
override PAD: u32 = FILTER / 2;
override EXTENT: u32 = (TILE - 1) * STRIDE + FILTER;
override INPUTS: u32 = EXTENT * EXTENT;
override WEIGHTS: u32 = FILTER * FILTER;

struct Arguments {
    channels: u32,
    height: u32,
    width: u32,
}

@group(0) @binding(0) var<uniform> arguments: Arguments;
@group(0) @binding(1) var<storage, read> in: array<f32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> tile: array<f32, INPUTS>;
var<workgroup> w: array<f32, WEIGHTS>;

@compute @workgroup_size(TILE, TILE)
fn conv2d(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3u,
) {
    let height = arguments.height;
    let width = arguments.width;
    let feature = group.z;
    let rows = (height + STRIDE - 1) / STRIDE;
    let columns = (width + STRIDE - 1) / STRIDE;
    // The tile's corner in the input; negative where it starts in the padding.
    let top = i32(group.y * TILE * STRIDE) - i32(PAD);
    let left = i32(group.x * TILE * STRIDE) - i32(PAD);

    var sum = bias[feature];
    for (var channel = 0u; channel < arguments.channels; channel++) {
        let plane = channel * height * width;
        for (var i = lane; i < INPUTS; i += TILE * TILE) {
            let row = top + i32(i / EXTENT);
            let column = left + i32(i % EXTENT);
            var value = 0.0;
            if row >= 0 && row < i32(height) && column >= 0 && column < i32(width) {
                value = in[plane + u32(row) * width + u32(column)];
            }
            tile[i] = value;
        }
        for (var i = lane; i < WEIGHTS; i += TILE * TILE) {
            w[i] = weights[(feature * arguments.channels + channel) * WEIGHTS + i];
        }
        workgroupBarrier();
        for (var fy = 0u; fy < FILTER; fy++) {
            for (var fx = 0u; fx < FILTER; fx++) {
                let under = (local.y * STRIDE + fy) * EXTENT + local.x * STRIDE + fx;
                sum += w[fy * FILTER + fx] * tile[under];
            }
        }
        workgroupBarrier();
    }

    if id.y < rows && id.x < columns {
        out[(feature * rows + id.y) * columns + id.x] = sum;
    }
}
