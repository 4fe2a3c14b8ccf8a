// The sum or the maximum of n elements (OP is SUM or MAX; T may be int).
//
// Each block of BLOCK threads leaves one value in `out`. Run it over the whole input with as many
// blocks as keep the device busy, then with one block over what they left.

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

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce(unsigned n, const T *__restrict__ in, T *__restrict__ out) {
    __shared__ T scratch[BLOCK];
    const unsigned lane = threadIdx.x;

    // Neighbours read neighbours, and the blocks stride over the input together.
    T value = IDENTITY;
    for (size_t i = (size_t)blockIdx.x * BLOCK + lane; i < n; i += (size_t)gridDim.x * BLOCK) {
        value = OP(value, in[i]);
    }

    scratch[lane] = value;
    for (unsigned width = BLOCK / 2; width > 0; width /= 2) {
        __syncthreads();
        if (lane < width) {
            scratch[lane] = OP(scratch[lane], scratch[lane + width]);
        }
    }
    if (lane == 0) {
        out[blockIdx.x] = scratch[0];
    }
}
