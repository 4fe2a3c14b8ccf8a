// One head of attention, softmax(scale * Q K^T) V, without ever holding the scores:
// queries x HEAD_DIM, keys x HEAD_DIM, row-major. With CAUSAL a query sees the keys up to its own
// place, counted from the end, so keys must be at least queries.
//
// Keys come in tiles of TILE; a tile that raises the maximum rescales what was summed so far.

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

static void attend(size_t keys, T scale, const T *restrict q, const T *restrict k,
                   const T *restrict v, T *restrict out) {
    T sum[HEAD_DIM] = {0};
    T total = 0;
    T maximum = LOWEST;
    for (size_t start = 0; start < keys; start += TILE) {
        const size_t count = MIN(TILE, keys - start);
        T scores[TILE];
        T next = maximum;
        for (size_t j = 0; j < count; ++j) {
            const T *key = k + (start + j) * HEAD_DIM;
            T score = 0;
            for (size_t d = 0; d < HEAD_DIM; ++d) {
                score += q[d] * key[d];
            }
            scores[j] = score * scale;
            next = MAX(next, scores[j]);
        }
        const T rescale = exp(maximum - next);
        maximum = next;
        total *= rescale;
        for (size_t d = 0; d < HEAD_DIM; ++d) {
            sum[d] *= rescale;
        }
        for (size_t j = 0; j < count; ++j) {
            const T *value = v + (start + j) * HEAD_DIM;
            const T weight = exp(scores[j] - maximum);
            total += weight;
            for (size_t d = 0; d < HEAD_DIM; ++d) {
                sum[d] += weight * value[d];
            }
        }
    }
    for (size_t d = 0; d < HEAD_DIM; ++d) {
        out[d] = sum[d] / total;
    }
}

void attention(size_t queries, size_t keys, T scale, const T *restrict q, const T *restrict k,
               const T *restrict v, T *restrict out) {
    for (size_t row = 0; row < queries; ++row) {
        const size_t visible = CAUSAL ? keys - queries + row + 1 : keys;
        attend(visible, scale, q + row * HEAD_DIM, k, v, out + row * HEAD_DIM);
    }
}
