// C = A B, row-major: A is m x k, B is k x n, C is m x n.
//
// A workgroup computes a tile of TILE x TILE elements of C from tiles of A and B in its memory. An
// invocation computes WORK of them (at most 4, and a divisor of TILE), in one column, so each value
// of B that it reads serves WORK products. Workgroups: one for each tile of C (columns, rows).

override TILE: u32 = 16;
override WORK: u32 = 4;
override STEP: u32 = TILE / WORK;
override AREA: u32 = TILE * TILE;

// Only memory of the workgroup may be as large as an `override` says.
const MOST_WORK = 4;

struct Arguments {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<uniform> arguments: Arguments;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

var<workgroup> tile_a: array<f32, AREA>;
var<workgroup> tile_b: array<f32, AREA>;

@compute @workgroup_size(TILE, STEP)
fn matmul(
    @builtin(local_invocation_id) lane: vec3u,
    @builtin(workgroup_id) group: vec3u,
) {
    let m = arguments.m;
    let n = arguments.n;
    let k = arguments.k;
    let column = group.x * TILE + lane.x;
    let row = group.y * TILE + lane.y;

    var sum: array<f32, MOST_WORK>;
    for (var start = 0u; start < k; start += TILE) {
        // What lies outside is zero and adds nothing, so the inner loop needs no bounds.
        for (var w = 0u; w < WORK; w++) {
            let r = lane.y + w * STEP;
            let row_a = row + w * STEP;
            let row_b = start + r;
            var value_a = 0.0;
            if row_a < m && start + lane.x < k {
                value_a = a[row_a * k + start + lane.x];
            }
            var value_b = 0.0;
            if row_b < k && column < n {
                value_b = b[row_b * n + column];
            }
            tile_a[r * TILE + lane.x] = value_a;
            tile_b[r * TILE + lane.x] = value_b;
        }
        workgroupBarrier();
        for (var p = 0u; p < TILE; p++) {
            let factor = tile_b[p * TILE + lane.x];
            for (var w = 0u; w < WORK; w++) {
                sum[w] += tile_a[(lane.y + w * STEP) * TILE + p] * factor;
            }
        }
        workgroupBarrier();
    }

    for (var w = 0u; w < WORK; w++) {
        if row + w * STEP < m && column < n {
            c[(row + w * STEP) * n + column] = sum[w];
        }
    }
}
