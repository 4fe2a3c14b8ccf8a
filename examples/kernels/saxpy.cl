// y = a x + y. One work-item takes VECTOR elements (1, 2, 4, 8 or 16).
// Global size: n / VECTOR, rounded up to whole work-groups.

#include "common.h"

#ifndef VECTOR
#define VECTOR 4
#endif

#if VECTOR == 1
#define LOAD(index, from) (from)[index]
#define STORE(value, index, to) (to)[index] = (value)
#else
#define LOAD JOIN(vload, VECTOR)
#define STORE JOIN(vstore, VECTOR)
#endif

kernel void saxpy(uint n, T a, global const T *restrict x, global T *restrict y) {
    const size_t item = get_global_id(0);
    const size_t first = item * VECTOR;
    if (first + VECTOR <= n) {
        STORE(LOAD(item, y) + a * LOAD(item, x), item, y);
    } else {
        for (size_t i = first; i < n; ++i) {
            y[i] += a * x[i];
        }
    }
}
