// Inclusive prefix sums (T may be int) after Blelloch: work-efficient, in two kernels.
//
//   scan_blocks   each block scans 2 * BLOCK elements, and leaves their total in `sums`
//   (the caller scans `sums` the same way)
//   scan_add      to each block what all blocks before it add up to
//
// Grid of both: one block of BLOCK threads for each 2 * BLOCK elements, the last one ragged.

#include "common.h"

#ifndef BLOCK
#define BLOCK 128
#endif

#if BLOCK & (BLOCK - 1)
#error "BLOCK must be a power of two: the tree halves it"
#endif

#define SPAN (2 * BLOCK)

extern "C" __global__ void __launch_bounds__(BLOCK)
scan_blocks(unsigned n, const T *__restrict__ in, T *__restrict__ out, T *__restrict__ sums) {
    __shared__ T tree[SPAN];
    const unsigned lane = threadIdx.x;
    const size_t low = (size_t)blockIdx.x * SPAN + lane;
    const size_t high = low + BLOCK;
    const T first = low < n ? in[low] : 0;
    const T second = high < n ? in[high] : 0;
    tree[lane] = first;
    tree[lane + BLOCK] = second;

    // Up: every inner node of the tree becomes the sum of its leaves.
    unsigned reach = 1;
    for (unsigned nodes = BLOCK; nodes > 0; nodes /= 2) {
        __syncthreads();
        if (lane < nodes) {
            const unsigned left = reach * (2 * lane + 1) - 1;
            tree[left + reach] += tree[left];
        }
        reach *= 2;
    }
    if (lane == 0) {
        sums[blockIdx.x] = tree[SPAN - 1];
        tree[SPAN - 1] = 0;
    }

    // Down: every node hands its children what lies before them.
    for (unsigned nodes = 1; nodes <= BLOCK; nodes *= 2) {
        reach /= 2;
        __syncthreads();
        if (lane < nodes) {
            const unsigned left = reach * (2 * lane + 1) - 1;
            const T before = tree[left + reach];
            tree[left + reach] = before + tree[left];
            tree[left] = before;
        }
    }
    __syncthreads();

    // The tree holds the exclusive sums; an element's own value makes them inclusive.
    if (low < n) {
        out[low] = tree[lane] + first;
    }
    if (high < n) {
        out[high] = tree[lane + BLOCK] + second;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
scan_add(unsigned n, T *__restrict__ out, const T *__restrict__ sums) {
    if (blockIdx.x == 0) {
        return;
    }
    const size_t low = (size_t)blockIdx.x * SPAN + threadIdx.x;
    const size_t high = low + BLOCK;
    const T before = sums[blockIdx.x - 1];
    if (low < n) {
        out[low] += before;
    }
    if (high < n) {
        out[high] += before;
    }
}
