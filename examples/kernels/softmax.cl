// The softmax of each row, or with LOG its logarithm. One work-group of BLOCK items a row.
//
// Online: each item walks its share of the row once and keeps a maximum and the sum of exponentials
// below it; a tree then joins the pairs. No exponent is ever positive, so nothing overflows.

#include "common.h"

#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef LOG
#define LOG 0
#endif

#if BLOCK & (BLOCK - 1)
#error "BLOCK must be a power of two: the tree halves it"
#endif

kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void softmax(uint columns, global const T *restrict in, global T *restrict out) {
    local T maxima[BLOCK];
    local T sums[BLOCK];
    const uint lane = get_local_id(0);
    in += get_group_id(0) * columns;
    out += get_group_id(0) * columns;

    T maximum = LOWEST;
    T sum = 0;
    for (size_t i = lane; i < columns; i += BLOCK) {
        const T next = fmax(maximum, in[i]);
        sum = sum * exp(maximum - next) + exp(in[i] - next);
        maximum = next;
    }

    maxima[lane] = maximum;
    sums[lane] = sum;
    for (uint width = BLOCK / 2; width > 0; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < width) {
            const T mine = maxima[lane];
            const T theirs = maxima[lane + width];
            const T next = fmax(mine, theirs);
            sums[lane] = sums[lane] * exp(mine - next) + sums[lane + width] * exp(theirs - next);
            maxima[lane] = next;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    maximum = maxima[0];
    sum = sums[0];

#if LOG
    const T shift = maximum + log(sum);
    for (size_t i = lane; i < columns; i += BLOCK) {
        out[i] = in[i] - shift;
    }
#else
    const T scale = 1 / sum;
    for (size_t i = lane; i < columns; i += BLOCK) {
        out[i] = exp(in[i] - maximum) * scale;
    }
#endif
}
