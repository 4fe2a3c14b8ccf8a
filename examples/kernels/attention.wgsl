// One head of attention, softmax(scale * Q K^T) V, without ever holding the scores:
// queries x HEAD_DIM, keys x HEAD_DIM, row-major. With CAUSAL a query sees the keys up to its own
// place, counted from the end, so keys must be at least queries.
//
// An invocation owns a query, a workgroup TILE of them. Keys and values pass through the workgroup's
// memory in tiles of TILE; a key that raises the maximum rescales what was summed so far. The sums
// are kept in `out` itself: an array of an invocation's own can't be as long as an `override` says.
// Workgroups: enough for all queries.

override HEAD_DIM: u32 = 64;
override TILE: u32 = 16;
override CAUSAL: bool = false;
override AREA: u32 = TILE * HEAD_DIM;

// The lowest finite value, where a running maximum starts.
const LOWEST = -0x1.fffffep+127f;

struct Arguments {
    queries: u32,
    keys: u32,
    scale: f32,
}

@group(0) @binding(0) var<uniform> arguments: Arguments;
@group(0) @binding(1) var<storage, read> q: array<f32>;
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> tile_k: array<f32, AREA>;
var<workgroup> tile_v: array<f32, AREA>;

@compute @workgroup_size(TILE)
fn attention(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let queries = arguments.queries;
    let keys = arguments.keys;
    let row = id.x;

    // Invocations beyond the last query stay, for the barriers and the loads, and compute nothing.
    let inside = row < queries;
    var visible = 0u;
    if inside {
        visible = select(keys, keys - queries + row + 1, CAUSAL);
    }
    let own = row * HEAD_DIM;
    if inside {
        for (var d = 0u; d < HEAD_DIM; d++) {
            out[own + d] = 0;
        }
    }
    var total = 0.0;
    var maximum = LOWEST;

    for (var start = 0u; start < keys; start += TILE) {
        let count = min(TILE, keys - start);
        for (var i = lane; i < count * HEAD_DIM; i += TILE) {
            tile_k[i] = k[start * HEAD_DIM + i];
            tile_v[i] = v[start * HEAD_DIM + i];
        }
        workgroupBarrier();
        for (var j = 0u; j < count && start + j < visible; j++) {
            var score = 0.0;
            for (var d = 0u; d < HEAD_DIM; d++) {
                score += q[own + d] * tile_k[j * HEAD_DIM + d];
            }
            score *= arguments.scale;
            let next = max(maximum, score);
            let rescale = exp(maximum - next);
            let weight = exp(score - next);
            maximum = next;
            total = total * rescale + weight;
            for (var d = 0u; d < HEAD_DIM; d++) {
                out[own + d] = out[own + d] * rescale + weight * tile_v[j * HEAD_DIM + d];
            }
        }
        workgroupBarrier();
    }

    if inside {
        for (var d = 0u; d < HEAD_DIM; d++) {
            out[own + d] /= total;
        }
    }
}
