// The sum or the maximum of n elements (OP is SUM or MAX; T may be int).
//
// Pairwise: blocks of BLOCK elements are folded in a row, the blocks as a balanced tree. So the
// rounding error of a sum grows with log n, not with n, at the speed of a plain loop.

#include "common.h"

#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef OP
#define OP SUM
#endif

#define SUM(a, b) ((a) + (b))
#define IDENTITY_SUM 0
#define IDENTITY_MAX LOWEST
// Joined with OP as it is written in the define, so MAX stays a name here.
#define IDENTITY JOIN(IDENTITY_, OP)

static T fold(size_t n, const T *in) {
    T value = IDENTITY;
    for (size_t i = 0; i < n; ++i) {
        value = OP(value, in[i]);
    }
    return value;
}

void reduce(size_t n, const T *restrict in, T *restrict out) {
    // Subtrees that wait for their right half, the widest first. There are as many as the count
    // of blocks has bits set.
    T waiting[8 * sizeof(size_t)];
    size_t depth = 0;
    for (size_t block = 0; block * BLOCK < n; ++block) {
        const size_t start = block * BLOCK;
        T value = fold(MIN(BLOCK, n - start), in + start);
        for (size_t pairs = block; pairs & 1; pairs >>= 1) {
            --depth;
            value = OP(waiting[depth], value);
        }
        waiting[depth++] = value;
    }
    T value = IDENTITY;
    while (depth > 0) {
        --depth;
        value = OP(waiting[depth], value);
    }
    *out = value;
}
