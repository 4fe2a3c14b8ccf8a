// y = a x + y. One thread takes VECTOR elements (1, 2, 4, 8 or 16), which lie side by side; x and y
// begin where cuMemAlloc would have them begin.
// Threads: n / VECTOR, rounded up to whole blocks.

#include "common.h"

#ifndef VECTOR
#define VECTOR 4
#endif

// One memory access takes 16 bytes at most.
struct __align__(MIN(16, sizeof(T) * VECTOR)) Pack {
    T values[VECTOR];
};

extern "C" __global__ void saxpy(unsigned n, T a, const T *__restrict__ x, T *__restrict__ y) {
    const size_t item = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const size_t first = item * VECTOR;
    if (first + VECTOR <= n) {
        const Pack from = ((const Pack *)x)[item];
        Pack to = ((const Pack *)y)[item];
        for (unsigned i = 0; i < VECTOR; ++i) {
            to.values[i] += a * from.values[i];
        }
        ((Pack *)y)[item] = to;
    } else {
        for (size_t i = first; i < n; ++i) {
            y[i] += a * x[i];
        }
    }
}
