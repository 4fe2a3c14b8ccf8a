// y = a x + y, VECTOR elements at a time.

#include "common.h"

#ifndef VECTOR
#define VECTOR 8
#endif

void saxpy(size_t n, T a, const T *restrict x, T *restrict y) {
    size_t i = 0;
    // An inner loop of constant length becomes straight vector code.
    for (; i + VECTOR <= n; i += VECTOR) {
        for (size_t lane = 0; lane < VECTOR; ++lane) {
            y[i + lane] += a * x[i + lane];
        }
    }
    for (; i < n; ++i) {
        y[i] += a * x[i];
    }
}
