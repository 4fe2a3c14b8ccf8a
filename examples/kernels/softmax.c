// The softmax of each row, or with LOG its logarithm.
//
// Online, in chunks of BLOCK: one pass finds the maximum and the sum of the exponentials, which is
// rescaled when a chunk raises the maximum. No exponent is ever positive, so nothing overflows.

#include "common.h"

#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef LOG
#define LOG 0
#endif

static void softmax_row(size_t columns, const T *restrict in, T *restrict out) {
    T maximum = LOWEST;
    T sum = 0;
    for (size_t start = 0; start < columns; start += BLOCK) {
        const size_t end = MIN(columns, start + BLOCK);
        T next = maximum;
        for (size_t i = start; i < end; ++i) {
            next = MAX(next, in[i]);
        }
        sum *= exp(maximum - next);
        for (size_t i = start; i < end; ++i) {
            sum += exp(in[i] - next);
        }
        maximum = next;
    }
#if LOG
    const T shift = maximum + log(sum);
    for (size_t i = 0; i < columns; ++i) {
        out[i] = in[i] - shift;
    }
#else
    const T scale = 1 / sum;
    for (size_t i = 0; i < columns; ++i) {
        out[i] = exp(in[i] - maximum) * scale;
    }
#endif
}

void softmax(size_t rows, size_t columns, const T *restrict in, T *restrict out) {
    for (size_t row = 0; row < rows; ++row) {
        softmax_row(columns, in + row * columns, out + row * columns);
    }
}
