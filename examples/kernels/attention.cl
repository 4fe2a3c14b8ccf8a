// One head of attention, softmax(scale * Q K^T) V, without ever holding the scores:
// queries x HEAD_DIM, keys x HEAD_DIM, row-major. With CAUSAL a query sees the keys up to its own
// place, counted from the end, so keys must be at least queries.
//
// A work-item owns a query, a work-group TILE of them. Keys and values pass through local memory in
// tiles of TILE; a key that raises the maximum rescales what was summed so far.
// Global size: queries, rounded up to whole groups of TILE.

#include "common.h"

#ifndef HEAD_DIM
#define HEAD_DIM 64
#endif
#ifndef TILE
#define TILE 16
#endif
#ifndef CAUSAL
#define CAUSAL 0
#endif

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void attention(uint queries, uint keys, T scale, global const T *restrict q,
               global const T *restrict k, global const T *restrict v, global T *restrict out) {
    local T tile_k[TILE * HEAD_DIM];
    local T tile_v[TILE * HEAD_DIM];
    const uint lane = get_local_id(0);
    const size_t row = get_global_id(0);

    // Items beyond the last query stay, for the barriers and the loads, and compute nothing.
    const bool active = row < queries;
    const uint visible = !active ? 0 : CAUSAL ? keys - queries + (uint)row + 1 : keys;
    T query[HEAD_DIM];
    T sum[HEAD_DIM];
    for (uint d = 0; d < HEAD_DIM; ++d) {
        query[d] = active ? scale * q[row * HEAD_DIM + d] : 0;
        sum[d] = 0;
    }
    T total = 0;
    T maximum = LOWEST;

    for (uint start = 0; start < keys; start += TILE) {
        const uint count = MIN(TILE, keys - start);
        for (uint i = lane; i < count * HEAD_DIM; i += TILE) {
            tile_k[i] = k[(size_t)start * HEAD_DIM + i];
            tile_v[i] = v[(size_t)start * HEAD_DIM + i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < count && start + j < visible; ++j) {
            T score = 0;
            for (uint d = 0; d < HEAD_DIM; ++d) {
                score += query[d] * tile_k[j * HEAD_DIM + d];
            }
            const T next = fmax(maximum, score);
            const T rescale = exp(maximum - next);
            const T weight = exp(score - next);
            maximum = next;
            total = total * rescale + weight;
            for (uint d = 0; d < HEAD_DIM; ++d) {
                sum[d] = sum[d] * rescale + weight * tile_v[j * HEAD_DIM + d];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (active) {
        for (uint d = 0; d < HEAD_DIM; ++d) {
            out[row * HEAD_DIM + d] = sum[d] / total;
        }
    }
}
