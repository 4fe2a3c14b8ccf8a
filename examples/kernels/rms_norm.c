// Each row divided by its root mean square, then scaled by the weights; with UNIT_OFFSET by one
// plus the weights, as models do whose weights are trained around zero.

#include "common.h"

#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef UNIT_OFFSET
#define UNIT_OFFSET 0
#endif

void rms_norm(size_t rows, size_t columns, T epsilon, const T *restrict in,
              const T *restrict weights, T *restrict out) {
    for (size_t row = 0; row < rows; ++row) {
        const T *x = in + row * columns;
        T *y = out + row * columns;
        // Block by block: short sums lose less than one long one.
        T squares = 0;
        for (size_t start = 0; start < columns; start += BLOCK) {
            const size_t end = MIN(columns, start + BLOCK);
            T partial = 0;
            for (size_t i = start; i < end; ++i) {
                partial += x[i] * x[i];
            }
            squares += partial;
        }
        const T scale = 1 / sqrt(squares / (T)columns + epsilon);
        for (size_t i = 0; i < columns; ++i) {
            y[i] = x[i] * scale * (weights[i] + UNIT_OFFSET);
        }
    }
}
