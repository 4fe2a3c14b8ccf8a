// The sum, or with MAX the maximum, of n elements, which are whole numbers.
//
// Each workgroup of BLOCK invocations leaves one value in `out`. Run it over the whole input with as
// many workgroups as keep the device busy, then with one over what they left. BLOCK must be a power
// of two: the tree halves it.

override BLOCK: u32 = 128;
override MAX: bool = false;

alias T = i32;

// The lowest of its type, where a running maximum starts.
const LOWEST: T = -2147483648;

struct Arguments {
    n: u32,
}

@group(0) @binding(0) var<uniform> arguments: Arguments;
@group(0) @binding(1) var<storage, read> in: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<T>;

var<workgroup> scratch: array<T, BLOCK>;

fn join(a: T, b: T) -> T {
    if MAX {
        return max(a, b);
    }
    return a + b;
}

@compute @workgroup_size(BLOCK)
fn reduce(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
) {
    // Neighbours read neighbours, and the workgroups stride over the input together.
    var value = select(T(0), LOWEST, MAX);
    for (var i = id.x; i < arguments.n; i += groups.x * BLOCK) {
        value = join(value, in[i]);
    }

    scratch[lane] = value;
    for (var width = BLOCK / 2; width > 0; width /= 2) {
        workgroupBarrier();
        if lane < width {
            scratch[lane] = join(scratch[lane], scratch[lane + width]);
        }
    }
    if lane == 0 {
        out[group.x] = scratch[0];
    }
}
