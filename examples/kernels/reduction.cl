// The sum or the maximum of n elements (OP is SUM or MAX; T may be int).
//
// Each work-group of BLOCK items leaves one value in `out`. Run it over the whole input with as many
// groups as keep the device busy, then with one group over what they left.

#include "common.h"

#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef OP
#define OP SUM
#endif

#if BLOCK & (BLOCK - 1)
#error "BLOCK must be a power of two: the tree halves it"
#endif

#define SUM(a, b) ((a) + (b))
#define IDENTITY_SUM 0
#define IDENTITY_MAX LOWEST
// Joined with OP as it is written in the define, so MAX stays a name here.
#define IDENTITY JOIN(IDENTITY_, OP)

kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void reduce(uint n, global const T *restrict in, global T *restrict out) {
    local T scratch[BLOCK];
    const uint lane = get_local_id(0);

    // Neighbours read neighbours, and the groups stride over the input together.
    T value = IDENTITY;
    for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) {
        value = OP(value, in[i]);
    }

    scratch[lane] = value;
    for (uint width = BLOCK / 2; width > 0; width /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < width) {
            scratch[lane] = OP(scratch[lane], scratch[lane + width]);
        }
    }
    if (lane == 0) {
        out[get_group_id(0)] = scratch[0];
    }
}
