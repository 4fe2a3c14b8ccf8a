// A 2-D convolution (as networks call it: the filter is not flipped) with bias, padded with zeros by
// half the filter. Row-major, channels first:
//
//   in       channels x height x width
//   weights  filters x channels x FILTER x FILTER, FILTER odd
//   bias     filters
//   out      filters x ceil(height / STRIDE) x ceil(width / STRIDE)

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

// The outputs [begin, end) of a strip that starts at output `first` for which the input element
// under column `f` of the filter lies inside a row of `width`. The others see padding.
static inline void inside(size_t first, size_t count, size_t f, size_t width, size_t *begin,
                          size_t *end) {
    const size_t at = first * STRIDE + f; // where the strip starts, counted in the padded row
    *begin = at < PAD ? (PAD - at + STRIDE - 1) / STRIDE : 0;
    *end = width + PAD <= at ? 0 : MIN(count, (width + PAD - at + STRIDE - 1) / STRIDE);
}

void conv2d(size_t channels, size_t filters, size_t height, size_t width, const T *restrict in,
            const T *restrict weights, const T *restrict bias, T *restrict out) {
    const size_t rows = (height + STRIDE - 1) / STRIDE;
    const size_t columns = (width + STRIDE - 1) / STRIDE;
    for (size_t filter = 0; filter < filters; ++filter) {
        for (size_t row = 0; row < rows; ++row) {
            // A strip of TILE outputs stays in registers while channels and filter run.
            for (size_t first = 0; first < columns; first += TILE) {
                const size_t count = MIN(TILE, columns - first);
                T sum[TILE];
                for (size_t x = 0; x < TILE; ++x) {
                    sum[x] = bias[filter];
                }
                for (size_t channel = 0; channel < channels; ++channel) {
                    const T *plane = in + channel * height * width;
                    const T *w = weights + (filter * channels + channel) * FILTER * FILTER;
                    for (size_t fy = 0; fy < FILTER; ++fy) {
                        const size_t y = row * STRIDE + fy; // in the padded plane
                        if (y < PAD || y >= height + PAD) {
                            continue;
                        }
                        const T *line = plane + (y - PAD) * width;
                        for (size_t fx = 0; fx < FILTER; ++fx) {
                            const T factor = w[fy * FILTER + fx];
                            size_t begin, end;
                            inside(first, count, fx, width, &begin, &end);
                            for (size_t x = begin; x < end; ++x) {
                                sum[x] += factor * line[(first + x) * STRIDE + fx - PAD];
                            }
                        }
                    }
                }
                for (size_t x = 0; x < count; ++x) {
                    out[(filter * rows + row) * columns + first + x] = sum[x];
                }
            }
        }
    }
}
