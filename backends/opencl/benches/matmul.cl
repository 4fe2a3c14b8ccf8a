// C = A B, row-major, n x n, n a multiple of TILE: a work-group for each tile of C, WORK elements in
// one column for each item.

#define STEP (TILE / WORK)

kernel __attribute__((reqd_work_group_size(TILE, STEP, 1)))
void matmul(uint n, global const T *restrict a, global const T *restrict b, global T *restrict c) {
    local T left[TILE][TILE];
    local T right[TILE][TILE];
    const uint x = get_local_id(0);
    const uint y = get_local_id(1);
    const size_t column = get_group_id(0) * TILE + x;
    const size_t row = get_group_id(1) * TILE + y;
    T sum[WORK] = {0};
    for (size_t start = 0; start < n; start += TILE) {
        for (uint w = 0; w < WORK; ++w) {
            const uint at = y + w * STEP;
            left[at][x] = a[(row + w * STEP) * n + start + x];
            right[at][x] = b[(start + at) * n + column];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint p = 0; p < TILE; ++p) {
            for (uint w = 0; w < WORK; ++w) {
                sum[w] += left[y + w * STEP][p] * right[p][x];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint w = 0; w < WORK; ++w) {
        c[(row + w * STEP) * n + column] = sum[w];
    }
}
