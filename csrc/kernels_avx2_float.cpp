// Real convolution and pooling with AVX2 and FMA, and the AVX2 table.
#include <immintrin.h>

#include "kernels_avx2.h"
#include "kernels_scalar.h"

namespace latentbit {
namespace {

#define LATENTBIT_UNROLL _Pragma("GCC unroll 8")

// P output pixels by V vectors of 8 channels. Each tap row is a run of contiguous floats when taps touch; the
// weights follow in the same order, kConvBlock channels per step. Panels beyond the first are panel floats
// apart.
template <int P, int V>
void conv_tile(const ConvShape& s, const float* panels, const float* bias, size_t panel, const float* x,
               float* out, int out_stride, int channels) {
  const int runs = s.dilation_w == 1 && s.pixel == s.in_channels ? 1 : s.kernel_w;
  const int length = s.in_channels * (s.kernel_w / runs), step = s.stride_w * s.pixel;
  __m256 sum[P][V];
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) sum[p][v] =
      _mm256_loadu_ps(bias + v * 8);
  const float* w = panels;
  for (int ky = 0; ky < s.kernel_h; ++ky)
    for (int run = 0; run < runs; ++run) {
      const float* at = x + static_cast<size_t>(ky) * s.dilation_h * s.row +
                        static_cast<size_t>(run) * s.dilation_w * s.pixel;
      for (int i = 0; i < length; ++i, w += kConvBlock) {
        __m256 weights[V];
        LATENTBIT_UNROLL for (int v = 0; v < V; ++v) weights[v] =
            _mm256_loadu_ps(w + (v / 2) * panel + (v % 2) * 8);
        LATENTBIT_UNROLL for (int p = 0; p < P; ++p) {
          const __m256 value = _mm256_broadcast_ss(at + i + p * step);
          LATENTBIT_UNROLL for (int v = 0; v < V; ++v) sum[p][v] =
              _mm256_fmadd_ps(value, weights[v], sum[p][v]);
        }
      }
    }
  LATENTBIT_UNROLL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL for (int v = 0; v < V; ++v) {
    float* to = out + static_cast<size_t>(p) * out_stride + v * 8;
    const int left = channels - v * 8;
    if (left >= 8) {
      _mm256_storeu_ps(to, sum[p][v]);
    } else {
      float lane[8];
      _mm256_storeu_ps(lane, sum[p][v]);
      for (int i = 0; i < left; ++i) to[i] = lane[i];
    }
  }
}

using Tile = void (*)(const ConvShape&, const float*, const float*, size_t, const float*, float*, int, int);
constexpr int kTilePixels = 6;
constexpr Tile kTiles[kTilePixels + 1] = {nullptr,         conv_tile<1, 2>, conv_tile<2, 2>, conv_tile<3, 2>,
                                          conv_tile<4, 2>, conv_tile<5, 2>, conv_tile<6, 2>};

}  // namespace

void conv_row_avx2(const ConvShape& s, const float* panels, const float* bias, const float* frame, int oy,
                   int pixels, float* out, int out_stride) {
  const size_t panel = static_cast<size_t>(s.kernel_h) * s.kernel_w * s.in_channels * kConvBlock;
  const float* x = frame + static_cast<size_t>(oy) * s.stride_h * s.row;
  int c = 0;
  if (pixels == 1)  // a linear layer: more channels at once hide the latency of the additions
    for (; c + 4 * kConvBlock <= s.out_channels; c += 4 * kConvBlock)
      conv_tile<1, 8>(s, panels + panel * (c / kConvBlock), bias + c, panel, x, out + c, out_stride,
                      s.out_channels - c);
  for (; c < s.out_channels; c += kConvBlock)
    for (int p = 0; p < pixels; p += kTilePixels) {
      const int n = pixels - p < kTilePixels ? pixels - p : kTilePixels;
      kTiles[n](s, panels + panel * (c / kConvBlock), bias + c, panel,
                x + static_cast<size_t>(p) * s.stride_w * s.pixel,
                out + static_cast<size_t>(p) * out_stride + c, out_stride, s.out_channels - c);
    }
}

void max_pool_row_avx2(const Window& w, int channels, const float* image, int oy, float* out) {
  constexpr int kMaxTaps = 64;
  if (channels % 8 || w.taps() > kMaxTaps) {
    scalar_kernels().max_pool_row(w, channels, image, oy, out);
    return;
  }
  for (int ox = 0; ox < w.out_w; ++ox, out += channels) {
    const float* from[kMaxTaps];
    int n = 0;
    for (int ky = 0; ky < w.kernel_h; ++ky)
      for (int kx = 0; kx < w.kernel_w; ++kx) {
        const int source = w.source(oy, ox, ky, kx);
        if (source >= 0) from[n++] = image + static_cast<size_t>(source) * channels;
      }
    for (int c = 0; c < channels; c += 8) {
      __m256 best = _mm256_loadu_ps(from[0] + c);
      for (int i = 1; i < n; ++i) best = _mm256_max_ps(_mm256_loadu_ps(from[i] + c), best);
      _mm256_storeu_ps(out + c, best);
    }
  }
}

const Kernels& avx2_kernels() {
  static const Kernels kernels = {"avx2",         avx2_binary_kernels(), wide_scalar_kernels(),
                                  conv_row_avx2,  finish_real_avx2,      sign_planar_avx2,
                                  transpose_avx2, max_pool_row_avx2};
  return kernels;
}

}  // namespace latentbit
