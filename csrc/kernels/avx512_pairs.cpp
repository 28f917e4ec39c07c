// Two outputs of a row at a time with fewer products than taps; pair_conv.h has the arithmetic.
#include <immintrin.h>

#include "kernels/avx512.h"

namespace latentbit {
namespace {

#define LATENTBIT_UNROLL _Pragma("GCC unroll 16")
// Keeps weights in their register: without it GCC loads them anew for every product.
#if defined(LATENTBIT_SIMDE)
#define LATENTBIT_PIN(x) (void)(x)
#else
#define LATENTBIT_PIN(x) __asm__("" : "+v"(x))
#endif

// Every second float of 32, from the first (or second) on.
LATENTBIT_INLINE __m512 every_second(__m512 a, __m512 b, int from) {
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return _mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(from)), b);
}

LATENTBIT_INLINE void four_phases(const float* line, __m512 (&x)[4]) {
  const __m512 a = _mm512_loadu_ps(line), b = _mm512_loadu_ps(line + 16), c = _mm512_loadu_ps(line + 32),
               d = _mm512_loadu_ps(line + 48);
  const __m512 even_low = every_second(a, b, 0), even_high = every_second(c, d, 0);
  const __m512 odd_low = every_second(a, b, 1), odd_high = every_second(c, d, 1);
  x[0] = every_second(even_low, even_high, 0);
  x[1] = every_second(odd_low, odd_high, 0);
  x[2] = every_second(even_low, even_high, 1);
  x[3] = every_second(odd_low, odd_high, 1);
}

LATENTBIT_INLINE __m512 twice(__m512 x) { return _mm512_add_ps(x, x); }

// 3 taps, stride 1: 4 neighbouring samples.
LATENTBIT_INLINE void three_taps(__m512 x0, __m512 x1, __m512 x2, __m512 x3, float* out, int pitch) {
  _mm512_storeu_ps(out, _mm512_sub_ps(x0, x2));
  _mm512_storeu_ps(out + pitch, _mm512_add_ps(x1, x2));
  _mm512_storeu_ps(out + 2 * pitch, _mm512_sub_ps(x2, x1));
  _mm512_storeu_ps(out + 3 * pitch, _mm512_sub_ps(x3, x1));
}

// 4 taps: 5 samples.
LATENTBIT_INLINE void four_taps(__m512 x0, __m512 x1, __m512 x2, __m512 x3, __m512 x4, float* out,
                                int pitch) {
  const __m512 minus = _mm512_sub_ps(x3, x1);
  _mm512_storeu_ps(out, _mm512_add_ps(twice(_mm512_sub_ps(x0, x2)), minus));
  _mm512_storeu_ps(out + pitch, _mm512_add_ps(_mm512_sub_ps(twice(x1), x3), x2));
  _mm512_storeu_ps(out + 2 * pitch,
                   _mm512_sub_ps(_mm512_sub_ps(_mm512_add_ps(twice(x2), x2), twice(x1)), x3));
  _mm512_storeu_ps(out + 3 * pitch, minus);
  _mm512_storeu_ps(out + 4 * pitch, _mm512_sub_ps(_mm512_sub_ps(x4, x2), twice(minus)));
}

void transform(const PairShape& s, const float* line, float* out) {
  for (int t = 0; t < s.pairs; t += 16, out += 16) {
    if (s.products == 4) {
      const float* at = line + 2 * static_cast<size_t>(t);
      const __m512 a = _mm512_loadu_ps(at), b = _mm512_loadu_ps(at + 16);
      const __m512 c = _mm512_loadu_ps(at + 2), d = _mm512_loadu_ps(at + 18);
      three_taps(every_second(a, b, 0), every_second(a, b, 1), every_second(c, d, 0), every_second(c, d, 1),
                 out, s.pitch);
      continue;
    }
    const float* at = line + 4 * static_cast<size_t>(t);
    __m512 x[4], y[4], z[4];
    four_phases(at, x);
    four_phases(at + 4, y);
    four_phases(at + 8, z);
    four_taps(x[0], x[2], y[0], y[2], z[0], out, s.pitch);
    three_taps(x[1], x[3], y[1], y[3], out + 5 * static_cast<size_t>(s.pitch), s.pitch);
  }
}

LATENTBIT_INLINE void store(float* to, __m512 x, int channels) {
  if (channels >= 16)
    _mm512_storeu_ps(to, x);
  else
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << channels) - 1), x);
}

// The sums of N products from kFirst on, for T pairs of outputs by V vectors of channels. A few products at a
// time: their sums fill the registers, so that most operands are loaded once for several of them.
template <int kFirst, int N, int T, int V>
LATENTBIT_INLINE void sum_products(const PairShape& s, const float* panels, const float* x,
                                   __m512 (&sums)[N][T][V]) {
  const size_t step = static_cast<size_t>(s.products) * kConvBlock;
  const size_t panel = step * s.kernel_h * s.channels;
  LATENTBIT_UNROLL for (int j = 0; j < N; ++j) LATENTBIT_UNROLL for (int t = 0; t < T; ++t)
      LATENTBIT_UNROLL for (int v = 0; v < V; ++v) sums[j][t][v] = _mm512_setzero_ps();
  const float* weights = panels + kFirst * kConvBlock;
  for (int ky = 0; ky < s.kernel_h; ++ky, x += s.row) {
    const float* at = x + static_cast<size_t>(kFirst) * s.pitch;
    for (int c = 0; c < s.channels; ++c, at += static_cast<size_t>(s.products) * s.pitch, weights += step)
      LATENTBIT_UNROLL for (int j = 0; j < N; ++j) {
        __m512 w[V];
        LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
          w[v] = _mm512_loadu_ps(weights + v * panel + j * kConvBlock);
          LATENTBIT_PIN(w[v]);
        }
        LATENTBIT_UNROLL for (int t = 0; t < T; ++t) {
          const __m512 sample = _mm512_set1_ps(at[static_cast<size_t>(j) * s.pitch + t]);
          LATENTBIT_UNROLL for (int v = 0; v < V; ++v) sums[j][t][v] =
              _mm512_fmadd_ps(w[v], sample, sums[j][t][v]);
        }
      }
  }
}

// T pairs of outputs by V vectors of channels; n is the number of outputs that exist.
template <int J, int T, int V>
void tile(const PairShape& s, const float* panels, const float* bias, const float* x, int n, float* out,
          int out_stride, int channels) {
  __m512 y[2][T][V];
  if constexpr (J == 9) {
    __m512 m[3][T][V];
    sum_products<0, 3>(s, panels, x, m);
    LATENTBIT_UNROLL for (int t = 0; t < T; ++t) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
      y[0][t][v] = _mm512_add_ps(_mm512_add_ps(m[0][t][v], m[1][t][v]), m[2][t][v]);
      y[1][t][v] = _mm512_sub_ps(m[1][t][v], m[2][t][v]);
    }
    sum_products<3, 3>(s, panels, x, m);
    LATENTBIT_UNROLL for (int t = 0; t < T; ++t) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
      y[0][t][v] = _mm512_add_ps(y[0][t][v], _mm512_add_ps(m[0][t][v], m[2][t][v]));
      y[1][t][v] = _mm512_add_ps(y[1][t][v], _mm512_add_ps(twice(m[0][t][v]), m[1][t][v]));
    }
    sum_products<6, 3>(s, panels, x, m);
    LATENTBIT_UNROLL for (int t = 0; t < T; ++t) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
      y[0][t][v] = _mm512_add_ps(y[0][t][v], _mm512_add_ps(m[0][t][v], m[1][t][v]));
      y[1][t][v] =
          _mm512_add_ps(y[1][t][v], _mm512_add_ps(_mm512_sub_ps(m[0][t][v], m[1][t][v]), m[2][t][v]));
    }
  } else {
    __m512 m[4][T][V];
    sum_products<0, 4>(s, panels, x, m);
    LATENTBIT_UNROLL for (int t = 0; t < T; ++t) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
      y[0][t][v] = _mm512_add_ps(_mm512_add_ps(m[0][t][v], m[1][t][v]), m[2][t][v]);
      y[1][t][v] = _mm512_add_ps(_mm512_sub_ps(m[1][t][v], m[2][t][v]), m[3][t][v]);
    }
  }
  LATENTBIT_UNROLL for (int t = 0; t < T; ++t) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
    const __m512 b = _mm512_loadu_ps(bias + v * kConvBlock);
    float* to = out + static_cast<size_t>(2 * t) * out_stride + v * kConvBlock;
    store(to, _mm512_add_ps(y[0][t][v], b), channels - v * kConvBlock);
    if (2 * t + 1 < n) store(to + out_stride, _mm512_add_ps(y[1][t][v], b), channels - v * kConvBlock);
  }
}

// The last tile of a row has fewer pairs than the others.
template <int J, int T, int V>
void tile_of(int pairs, const PairShape& s, const float* panels, const float* bias, const float* x, int n,
             float* out, int out_stride, int channels) {
  if (pairs >= T)
    tile<J, T, V>(s, panels, bias, x, n, out, out_stride, channels);
  else if constexpr (T > 1)
    tile_of<J, T - 1, V>(pairs, s, panels, bias, x, n, out, out_stride, channels);
}

// All pairs of a row for V panels at a time, from channel c on; returns the first channel that is left.
template <int J, int T, int V>
int panels_of(const PairShape& s, int c, const float* panels, const float* bias, const float* x, int pixels,
              float* out, int out_stride) {
  const size_t panel = static_cast<size_t>(s.kernel_h) * s.channels * J * kConvBlock;
  for (; c + (V - 1) * kConvBlock < s.out_channels; c += V * kConvBlock)
    for (int t = 0; t < s.pairs; t += T)
      tile_of<J, T, V>(s.pairs - t, s, panels + panel * (c / kConvBlock), bias + c, x + t, pixels - 2 * t,
                       out + static_cast<size_t>(2 * t) * out_stride + c, out_stride, s.out_channels - c);
  return c;
}

void conv_row(const PairShape& s, const float* panels, const float* bias, const float* frame, int oy,
              int pixels, float* out, int out_stride) {
  const float* x = frame + static_cast<size_t>(oy) * s.stride_h * s.row;
  // Tiles that keep their weights in the L1 cache were faster than larger ones that share samples.
  if (s.products == 9) {
    panels_of<9, 6, 1>(s, 0, panels, bias, x, pixels, out, out_stride);
  } else {
    const int c = panels_of<4, 3, 2>(s, 0, panels, bias, x, pixels, out, out_stride);
    panels_of<4, 6, 1>(s, c, panels, bias, x, pixels, out, out_stride);
  }
}

}  // namespace

const PairKernels& avx512_pair_kernels() {
  static const PairKernels kernels = {transform, conv_row};
  return kernels;
}

}  // namespace latentbit
