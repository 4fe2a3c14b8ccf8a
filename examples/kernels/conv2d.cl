// A 2-D convolution (as networks call it: the filter is not flipped) with bias, padded with zeros by
// half the filter. Row-major, channels first:
//
//   in       channels x height x width
//   weights  filters x channels x FILTER x FILTER, FILTER odd
//   bias     filters
//   out      filters x ceil(height / STRIDE) x ceil(width / STRIDE)
//
// A work-group computes a tile of TILE x TILE outputs of one filter. Channel by channel it brings the
// input under the tile, its halo included, and the filter's weights into local memory.
// Local size: TILE x TILE x 1. Global size: whole tiles over out's columns and rows; filters.

#include "common.h"

#ifndef FILTER
#define FILTER 3
#endif
#ifndef STRIDE
#define STRIDE 1
#endif
#ifndef TILE
#define TILE 16
#endif

#define PAD (FILTER / 2)
#define EXTENT ((TILE - 1) * STRIDE + FILTER)

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void conv2d(uint channels, uint height, uint width, global const T *restrict in,
            global const T *restrict weights, global const T *restrict bias,
            global T *restrict out) {
    local T tile[EXTENT][EXTENT];
    local T w[FILTER * FILTER];
    const uint x = get_local_id(0);
    const uint y = get_local_id(1);
    const uint lane = y * TILE + x;
    const size_t filter = get_group_id(2);
    const uint rows = (height + STRIDE - 1) / STRIDE;
    const uint columns = (width + STRIDE - 1) / STRIDE;
    // The tile's corner in the input; negative where it starts in the padding.
    const int top = (int)(get_group_id(1) * TILE * STRIDE) - PAD;
    const int left = (int)(get_group_id(0) * TILE * STRIDE) - PAD;

    T sum = bias[filter];
    for (uint channel = 0; channel < channels; ++channel) {
        global const T *plane = in + (size_t)channel * height * width;
        for (uint i = lane; i < EXTENT * EXTENT; i += TILE * TILE) {
            const int row = top + (int)(i / EXTENT);
            const int column = left + (int)(i % EXTENT);
            const bool inside =
                row >= 0 && row < (int)height && column >= 0 && column < (int)width;
            tile[i / EXTENT][i % EXTENT] = inside ? plane[(size_t)row * width + column] : 0;
        }
        for (uint i = lane; i < FILTER * FILTER; i += TILE * TILE) {
            w[i] = weights[(filter * channels + channel) * FILTER * FILTER + i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint fy = 0; fy < FILTER; ++fy) {
            for (uint fx = 0; fx < FILTER; ++fx) {
                sum += w[fy * FILTER + fx] * tile[y * STRIDE + fy][x * STRIDE + fx];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    const size_t row = get_global_id(1);
    const size_t column = get_global_id(0);
    if (row < rows && column < columns) {
        out[(filter * rows + row) * columns + column] = sum;
    }
}
