// Inclusive prefix sums (T may be int) after Blelloch: work-efficient, in two kernels.
//
//   scan_blocks   each work-group scans 2 * BLOCK elements, and leaves their total in `sums`
//   (the caller scans `sums` the same way)
//   scan_add      to each block what all blocks before it add up to
//
// Global size of both: one group of BLOCK items for each 2 * BLOCK elements, the last one ragged.

#include "common.h"

#ifndef BLOCK
#define BLOCK 128
#endif

#if BLOCK & (BLOCK - 1)
#error "BLOCK must be a power of two: the tree halves it"
#endif

#define SPAN (2 * BLOCK)

kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void scan_blocks(uint n, global const T *restrict in, global T *restrict out,
                 global T *restrict sums) {
    local T tree[SPAN];
    const uint lane = get_local_id(0);
    const size_t low = get_group_id(0) * SPAN + lane;
    const size_t high = low + BLOCK;
    const T first = low < n ? in[low] : 0;
    const T second = high < n ? in[high] : 0;
    tree[lane] = first;
    tree[lane + BLOCK] = second;

    // Up: every inner node of the tree becomes the sum of its leaves.
    uint reach = 1;
    for (uint nodes = BLOCK; nodes > 0; nodes /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < nodes) {
            const uint left = reach * (2 * lane + 1) - 1;
            tree[left + reach] += tree[left];
        }
        reach *= 2;
    }
    if (lane == 0) {
        sums[get_group_id(0)] = tree[SPAN - 1];
        tree[SPAN - 1] = 0;
    }

    // Down: every node hands its children what lies before them.
    for (uint nodes = 1; nodes <= BLOCK; nodes *= 2) {
        reach /= 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < nodes) {
            const uint left = reach * (2 * lane + 1) - 1;
            const T before = tree[left + reach];
            tree[left + reach] = before + tree[left];
            tree[left] = before;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // The tree holds the exclusive sums; an element's own value makes them inclusive.
    if (low < n) {
        out[low] = tree[lane] + first;
    }
    if (high < n) {
        out[high] = tree[lane + BLOCK] + second;
    }
}

kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void scan_add(uint n, global T *restrict out, global const T *restrict sums) {
    const size_t block = get_group_id(0);
    if (block == 0) {
        return;
    }
    const size_t low = block * SPAN + get_local_id(0);
    const size_t high = low + BLOCK;
    const T before = sums[block - 1];
    if (low < n) {
        out[low] += before;
    }
    if (high < n) {
        out[high] += before;
    }
}
