// C = A B, row-major: A is m x k, B is k x n, C is m x n.
//
// A work-group computes a tile of TILE x TILE elements of C from tiles of A and B in local memory.
// A work-item computes WORK of them, in one column, so each value of B that it reads serves WORK
// products. Local size: TILE x TILE / WORK. Global size: that for each tile of C (columns, rows).

#include "common.h"

#ifndef TILE
#define TILE 16
#endif
#ifndef WORK
#define WORK 4
#endif

#if TILE % WORK
#error "WORK must divide TILE: the items of a column share it evenly"
#endif

#define STEP (TILE / WORK)

kernel __attribute__((reqd_work_group_size(TILE, STEP, 1)))
void matmul(uint m, uint n, uint k, global const T *restrict a, global const T *restrict b,
            global T *restrict c) {
    local T tile_a[TILE][TILE];
    local T tile_b[TILE][TILE];
    const uint x = get_local_id(0);
    const uint y = get_local_id(1);
    const size_t column = get_group_id(0) * TILE + x;
    const size_t row = get_group_id(1) * TILE + y;

    T sum[WORK] = {0};
    for (size_t start = 0; start < k; start += TILE) {
        // What lies outside is zero and adds nothing, so the inner loop needs no bounds.
        for (uint w = 0; w < WORK; ++w) {
            const uint r = y + w * STEP;
            const size_t row_a = row + w * STEP;
            const size_t row_b = start + r;
            tile_a[r][x] = row_a < m && start + x < k ? a[row_a * k + start + x] : 0;
            tile_b[r][x] = row_b < k && column < n ? b[row_b * n + column] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint p = 0; p < TILE; ++p) {
            const T factor = tile_b[p][x];
            for (uint w = 0; w < WORK; ++w) {
                sum[w] += tile_a[y + w * STEP][p] * factor;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    for (uint w = 0; w < WORK; ++w) {
        if (row + w * STEP < m && column < n) {
            c[(row + w * STEP) * n + column] = sum[w];
        }
    }
}
