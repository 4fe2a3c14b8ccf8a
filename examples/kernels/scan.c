// Inclusive prefix sums (T may be int), in two steps, so that blocks can go to several threads:
//
//   scan_blocks   each block of 2 * BLOCK elements by itself, and its total into `sums`
//   (the caller scans `sums` the same way)
//   scan_add      to each block what all blocks before it add up to

#include "common.h"

#ifndef BLOCK
#define BLOCK 128
#endif

#define SPAN (2 * (size_t)BLOCK)

void scan_blocks(size_t n, const T *restrict in, T *restrict out, T *restrict sums) {
    for (size_t block = 0; block * SPAN < n; ++block) {
        const size_t end = MIN(n, (block + 1) * SPAN);
        T sum = 0;
        for (size_t i = block * SPAN; i < end; ++i) {
            sum += in[i];
            out[i] = sum;
        }
        sums[block] = sum;
    }
}

void scan_add(size_t n, T *restrict out, const T *restrict sums) {
    for (size_t block = 1; block * SPAN < n; ++block) {
        const size_t end = MIN(n, (block + 1) * SPAN);
        const T before = sums[block - 1];
        for (size_t i = block * SPAN; i < end; ++i) {
            out[i] += before;
        }
    }
}
