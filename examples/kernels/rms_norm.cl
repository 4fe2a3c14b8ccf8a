// Each row divided by its root mean square, then scaled by the weights; with UNIT_OFFSET by one
// plus the weights, as models do whose weights are trained around zero.
// One work-group of BLOCK items a row.

#include "common.h"

#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef UNIT_OFFSET
#define UNIT_OFFSET 0
#endif

#if BLOCK & (BLOCK - 1)
#error "BLOCK must be a power of two: the tree halves it"
#endif

kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void rms_norm(uint columns, T epsilon, global const T *restrict in,
              global const T *restrict weights, global T *restrict out) {
    local T squares[BLOCK];
    const uint lane = get_local_id(0);
    in += get_group_id(0) * columns;
    out += get_group_id(0) * columns;

    T sum = 0;
    for (size_t i = lane; i < columns; i += BLOCK) {
        sum += in[i] * in[i];
    }
    squares[lane] = sum;
    for (uint width = BLOCK / 2; width > 0; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < width) {
            squares[lane] += squares[lane + width];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const T scale = rsqrt(squares[0] / columns + epsilon);
    for (size_t i = lane; i < columns; i += BLOCK) {
        out[i] = in[i] * scale * (weights[i] + UNIT_OFFSET);
    }
}
