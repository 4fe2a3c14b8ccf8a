// Inclusive prefix sums of whole numbers after Blelloch: work-efficient, in two kernels.
//
//   scan_blocks   each workgroup scans 2 * BLOCK elements, and leaves their total in `sums`
//   (the caller scans `sums` the same way)
//   scan_add      to each block what all blocks before it add up to
//
// Workgroups of both: one of BLOCK invocations for each 2 * BLOCK elements, the last one ragged.
// BLOCK must be a power of two: the tree halves it.

override BLOCK: u32 = 128;
override SPAN: u32 = 2 * BLOCK;

alias T = i32;

struct Arguments {
    n: u32,
}

@group(0) @binding(0) var<uniform> arguments: Arguments;

// The two kernels number their buffers each for itself.
@group(0) @binding(1) var<storage, read> in: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<T>;
@group(0) @binding(3) var<storage, read_write> sums: array<T>;

@group(0) @binding(1) var<storage, read_write> blocks: array<T>;
@group(0) @binding(2) var<storage, read> before: array<T>;

var<workgroup> tree: array<T, SPAN>;

fn element(i: u32) -> T {
    if i < arguments.n {
        return in[i];
    }
    return T(0);
}

@compute @workgroup_size(BLOCK)
fn scan_blocks(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3u,
) {
    let low = group.x * SPAN + lane;
    let high = low + BLOCK;
    let first = element(low);
    let second = element(high);
    tree[lane] = first;
    tree[lane + BLOCK] = second;

    // Up: every inner node of the tree becomes the sum of its leaves.
    var reach = 1u;
    for (var nodes = BLOCK; nodes > 0; nodes /= 2) {
        workgroupBarrier();
        if lane < nodes {
            let left = reach * (2 * lane + 1) - 1;
            tree[left + reach] += tree[left];
        }
        reach *= 2;
    }
    if lane == 0 {
        sums[group.x] = tree[SPAN - 1];
        tree[SPAN - 1] = T(0);
    }

    // Down: every node hands its children what lies before them.
    for (var nodes = 1u; nodes <= BLOCK; nodes *= 2) {
        reach /= 2;
        workgroupBarrier();
        if lane < nodes {
            let left = reach * (2 * lane + 1) - 1;
            let earlier = tree[left + reach];
            tree[left + reach] = earlier + tree[left];
            tree[left] = earlier;
        }
    }
    workgroupBarrier();

    // The tree holds the exclusive sums; an element's own value makes them inclusive.
    if low < arguments.n {
        out[low] = tree[lane] + first;
    }
    if high < arguments.n {
        out[high] = tree[lane + BLOCK] + second;
    }
}

@compute @workgroup_size(BLOCK)
fn scan_add(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3u,
) {
    if group.x == 0 {
        return;
    }
    let low = group.x * SPAN + lane;
    let high = low + BLOCK;
    let earlier = before[group.x - 1];
    if low < arguments.n {
        blocks[low] += earlier;
    }
    if high < arguments.n {
        blocks[high] += earlier;
    }
}
