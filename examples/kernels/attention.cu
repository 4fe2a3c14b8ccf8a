// One head of attention, softmax(scale * Q K^T) V, without ever holding the scores:
// queries x HEAD_DIM, keys x HEAD_DIM, row-major. With CAUSAL a query sees the keys up to its own
// place, counted from the end, so keys must be at least queries.
//
// A thread owns a query, a block TILE of them. Keys and values pass through shared memory in tiles of
// TILE; a key that raises the maximum rescales what was summed so far.
// Threads: queries, rounded up to whole blocks of TILE.

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

extern "C" __global__ void __launch_bounds__(TILE)
attention(unsigned queries, unsigned keys, T scale, const T *__restrict__ q,
          const T *__restrict__ k, const T *__restrict__ v, T *__restrict__ out) {
    __shared__ T tile_k[TILE * HEAD_DIM];
    __shared__ T tile_v[TILE * HEAD_DIM];
    const unsigned lane = threadIdx.x;
    const size_t row = (size_t)blockIdx.x * TILE + lane;

    // Threads beyond the last query stay, for the barriers and the loads, and compute nothing.
    const bool active = row < queries;
    const unsigned visible = !active ? 0 : CAUSAL ? keys - queries + (unsigned)row + 1 : keys;
    T query[HEAD_DIM];
    T sum[HEAD_DIM];
    for (unsigned d = 0; d < HEAD_DIM; ++d) {
        query[d] = active ? scale * q[row * HEAD_DIM + d] : 0;
        sum[d] = 0;
    }
    T total = 0;
    T maximum = LOWEST;

    for (unsigned start = 0; start < keys; start += TILE) {
        const unsigned count = MIN(TILE, keys - start);
        for (unsigned i = lane; i < count * HEAD_DIM; i += TILE) {
            tile_k[i] = k[(size_t)start * HEAD_DIM + i];
            tile_v[i] = v[(size_t)start * HEAD_DIM + i];
        }
        __syncthreads();
        for (unsigned j = 0; j < count && start + j < visible; ++j) {
            T score = 0;
            for (unsigned d = 0; d < HEAD_DIM; ++d) {
                score += query[d] * tile_k[j * HEAD_DIM + d];
            }
            const T next = fmax(maximum, score);
            const T rescale = exp(maximum - next);
            const T weight = exp(score - next);
            maximum = next;
            total = total * rescale + weight;
            for (unsigned d = 0; d < HEAD_DIM; ++d) {
                sum[d] = sum[d] * rescale + weight * tile_v[j * HEAD_DIM + d];
            }
        }
        __syncthreads();
    }

    if (active) {
        for (unsigned d = 0; d < HEAD_DIM; ++d) {
            out[row * HEAD_DIM + d] = sum[d] / total;
        }
    }
}
