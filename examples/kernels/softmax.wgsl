// The softmax of each row, or with LOG its logarithm. One workgroup of BLOCK invocations a row; BLOCK
// must be a power of two: the tree halves it.
//
// Online: each invocation walks its share of the row once and keeps a maximum and the sum of
// exponentials below it; a tree then joins the pairs. No exponent is ever positive, so nothing
// overflows.

override BLOCK: u32 = 128;
override LOG: bool = false;

// The lowest finite value, where a running maximum starts. Minus infinity would not do, since the
// first rescaling would take infinity from infinity.
const LOWEST = -0x1.fffffep+127f;

struct Arguments {
    columns: u32,
}

@group(0) @binding(0) var<uniform> arguments: Arguments;
@group(0) @binding(1) var<storage, read> in: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

var<workgroup> maxima: array<f32, BLOCK>;
var<workgroup> sums: array<f32, BLOCK>;

@compute @workgroup_size(BLOCK)
fn softmax(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3u,
) {
    let columns = arguments.columns;
    let row = group.x * columns;

    var maximum = LOWEST;
    var sum = 0.0;
    for (var i = lane; i < columns; i += BLOCK) {
        let value = in[row + i];
        let next = max(maximum, value);
        sum = sum * exp(maximum - next) + exp(value - next);
        maximum = next;
    }

    maxima[lane] = maximum;
    sums[lane] = sum;
    for (var width = BLOCK / 2; width > 0; width /= 2) {
        workgroupBarrier();
        if lane < width {
            let mine = maxima[lane];
            let theirs = maxima[lane + width];
            let next = max(mine, theirs);
            sums[lane] = sums[lane] * exp(mine - next) + sums[lane + width] * exp(theirs - next);
            maxima[lane] = next;
        }
    }
    workgroupBarrier();
    maximum = maxima[0];
    sum = sums[0];

    let shift = maximum + log(sum);
    let scale = 1 / sum;
    for (var i = lane; i < columns; i += BLOCK) {
        let value = in[row + i];
        if LOG {
            out[row + i] = value - shift;
        } else {
            out[row + i] = exp(value - maximum) * scale;
        }
    }
}
