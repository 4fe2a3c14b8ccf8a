// C = A B, row-major: A is m x k, B is k x n, C is m x n.
//
// A block of WORK rows by TILE columns of C stays in registers while k runs, so each element of A
// that is read serves TILE products and each of B serves WORK.

#include "common.h"

#ifndef TILE
#define TILE 16
#endif
#ifndef WORK
#define WORK 4
#endif

static inline void block(size_t rows, size_t columns, size_t n, size_t k, const T *restrict a,
                         const T *restrict b, T *restrict c) {
    T sum[WORK][TILE] = {{0}};
    for (size_t p = 0; p < k; ++p) {
        for (size_t row = 0; row < rows; ++row) {
            const T factor = a[row * k + p];
            for (size_t column = 0; column < columns; ++column) {
                sum[row][column] += factor * b[p * n + column];
            }
        }
    }
    for (size_t row = 0; row < rows; ++row) {
        for (size_t column = 0; column < columns; ++column) {
            c[row * n + column] = sum[row][column];
        }
    }
}

void matmul(size_t m, size_t n, size_t k, const T *restrict a, const T *restrict b, T *restrict c) {
    // Columns outside, so that one strip of B stays in the cache while A passes by.
    for (size_t column = 0; column < n; column += TILE) {
        const size_t columns = MIN(TILE, n - column);
        for (size_t row = 0; row < m; row += WORK) {
            const size_t rows = MIN(WORK, m - row);
            const T *strip = b + column;
            T *corner = c + row * n + column;
            // The whole block with constant bounds, which the compiler unrolls; the ragged rim not.
            if (rows == WORK && columns == TILE) {
                block(WORK, TILE, n, k, a + row * k, strip, corner);
            } else {
                block(rows, columns, n, k, a + row * k, strip, corner);
            }
        }
    }
}
