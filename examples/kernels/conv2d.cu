// A 2-D convolution (as networks call it: the filter is not flipped) with bias, padded with zeros by
// half the filter. Row-major, channels first:
//
//   in       channels x height x width
//   weights  filters x channels x FILTER x FILTER, FILTER odd
//   bias     filters
//   out      filters x ceil(height / STRIDE) x ceil(width / STRIDE)
//
// A block computes a tile of TILE x TILE outputs of one filter. Channel by channel it brings the input
// under the tile, its halo included, and the filter's weights into shared memory.
// Block: TILE x TILE x 1 threads. Grid: the tiles over out's columns and rows; filters.

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

extern "C" __global__ void __launch_bounds__(TILE *TILE)
conv2d(unsigned channels, unsigned height, unsigned width, const T *__restrict__ in,
       const T *__restrict__ weights, const T *__restrict__ bias, T *__restrict__ out) {
    __shared__ T tile[EXTENT][EXTENT];
    __shared__ T w[FILTER * FILTER];
    const unsigned x = threadIdx.x;
    const unsigned y = threadIdx.y;
    const unsigned lane = y * TILE + x;
    const size_t filter = blockIdx.z;
    const unsigned rows = (height + STRIDE - 1) / STRIDE;
    const unsigned columns = (width + STRIDE - 1) / STRIDE;
    // The tile's corner in the input; negative where it starts in the padding.
    const int top = (int)(blockIdx.y * TILE * STRIDE) - PAD;
    const int left = (int)(blockIdx.x * TILE * STRIDE) - PAD;

    T sum = bias[filter];
    for (unsigned channel = 0; channel < channels; ++channel) {
        const T *plane = in + (size_t)channel * height * width;
        for (unsigned i = lane; i < EXTENT * EXTENT; i += TILE * TILE) {
            const int row = top + (int)(i / EXTENT);
            const int column = left + (int)(i % EXTENT);
            const bool inside =
                row >= 0 && row < (int)height && column >= 0 && column < (int)width;
            tile[i / EXTENT][i % EXTENT] = inside ? plane[(size_t)row * width + column] : 0;
        }
        for (unsigned i = lane; i < FILTER * FILTER; i += TILE * TILE) {
            w[i] = weights[(filter * channels + channel) * FILTER * FILTER + i];
        }
        __syncthreads();
        for (unsigned fy = 0; fy < FILTER; ++fy) {
            for (unsigned fx = 0; fx < FILTER; ++fx) {
                sum += w[fy * FILTER + fx] * tile[y * STRIDE + fy][x * STRIDE + fx];
            }
        }
        __syncthreads();
    }

    const size_t row = (size_t)blockIdx.y * TILE + y;
    const size_t column = (size_t)blockIdx.x * TILE + x;
    if (row < rows && column < columns) {
        out[(filter * rows + row) * columns + column] = sum;
    }
}
