// C = A B, row-major: A is m x k, B is k x n, C is m x n.
//
// A block computes a tile of TILE x TILE elements of C from tiles of A and B in shared memory. A
// thread computes WORK of them, in one column, so each value of B that it reads serves WORK products.
// Block: TILE x TILE / WORK threads. Grid: one block for each tile of C (columns, rows).

#include "common.h"

#ifndef TILE
#define TILE 16
#endif
#ifndef WORK
#define WORK 4
#endif

#if TILE % WORK
#error "WORK must divide TILE: the threads of a column share it evenly"
#endif

#define STEP (TILE / WORK)

extern "C" __global__ void __launch_bounds__(TILE * STEP)
matmul(unsigned m, unsigned n, unsigned k, const T *__restrict__ a, const T *__restrict__ b,
       T *__restrict__ c) {
    __shared__ T tile_a[TILE][TILE];
    __shared__ T tile_b[TILE][TILE];
    const unsigned x = threadIdx.x;
    const unsigned y = threadIdx.y;
    const size_t column = (size_t)blockIdx.x * TILE + x;
    const size_t row = (size_t)blockIdx.y * TILE + y;

    T sum[WORK] = {0};
    for (size_t start = 0; start < k; start += TILE) {
        // What lies outside is zero and adds nothing, so the inner loop needs no bounds.
        for (unsigned w = 0; w < WORK; ++w) {
            const unsigned r = y + w * STEP;
            const size_t row_a = row + w * STEP;
            const size_t row_b = start + r;
            tile_a[r][x] = row_a < m && start + x < k ? a[row_a * k + start + x] : 0;
            tile_b[r][x] = row_b < k && column < n ? b[row_b * n + column] : 0;
        }
        __syncthreads();
        for (unsigned p = 0; p < TILE; ++p) {
            const T factor = tile_b[p][x];
            for (unsigned w = 0; w < WORK; ++w) {
                sum[w] += tile_a[y + w * STEP][p] * factor;
            }
        }
        __syncthreads();
    }

    for (unsigned w = 0; w < WORK; ++w) {
        if (row + w * STEP < m && column < n) {
            c[(row + w * STEP) * n + column] = sum[w];
        }
    }
}
