// Each row divided by its root mean square, then scaled by the weights; with UNIT_OFFSET by one
// plus the weights, as models do whose weights are trained around zero.
// One block of BLOCK threads a row.

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

extern "C" __global__ void __launch_bounds__(BLOCK)
rms_norm(unsigned columns, T epsilon, const T *__restrict__ in, const T *__restrict__ weights,
         T *__restrict__ out) {
    __shared__ T squares[BLOCK];
    const unsigned lane = threadIdx.x;
    in += (size_t)blockIdx.x * columns;
    out += (size_t)blockIdx.x * columns;

    T sum = 0;
    for (size_t i = lane; i < columns; i += BLOCK) {
        sum += in[i] * in[i];
    }
    squares[lane] = sum;
    for (unsigned width = BLOCK / 2; width > 0; width /= 2) {
        __syncthreads();
        if (lane < width) {
            squares[lane] += squares[lane + width];
        }
    }
    __syncthreads();

    const T scale = rsqrt(squares[0] / columns + epsilon);
    for (size_t i = lane; i < columns; i += BLOCK) {
        out[i] = in[i] * scale * (weights[i] + UNIT_OFFSET);
    }
}
