// The softmax of each row, or with LOG its logarithm. One block of BLOCK threads a row.
//
// Online: each thread walks its share of the row once and keeps a maximum and the sum of exponentials
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

extern "C" __global__ void __launch_bounds__(BLOCK)
softmax(unsigned columns, const T *__restrict__ in, T *__restrict__ out) {
    __shared__ T maxima[BLOCK];
    __shared__ T sums[BLOCK];
    const unsigned lane = threadIdx.x;
    in += (size_t)blockIdx.x * columns;
    out += (size_t)blockIdx.x * columns;

    T maximum = LOWEST;
    T sum = 0;
    for (size_t i = lane; i < columns; i += BLOCK) {
        const T next = fmax(maximum, in[i]);
        sum = sum * exp(maximum - next) + exp(in[i] - next);
        maximum = next;
    }

    maxima[lane] = maximum;
    sums[lane] = sum;
    for (unsigned width = BLOCK / 2; width > 0; width /= 2) {
        __syncthreads();
        if (lane < width) {
            const T mine = maxima[lane];
            const T theirs = maxima[lane + width];
            const T next = fmax(mine, theirs);
            sums[lane] = sums[lane] * exp(mine - next) + sums[lane + width] * exp(theirs - next);
            maxima[lane] = next;
        }
    }
    __syncthreads();
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
