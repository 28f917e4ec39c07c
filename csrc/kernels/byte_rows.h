// Rows of the convolution of bytes for any kind of vector.
// Lanes brings Ints and Floats (kLanes numbers each), Bytes (4 for each lane), start(offsets) (what a sum
// begins with: see ByteConvShape), weights(from), spread(from) (4 bytes, the same for all lanes), dot(sums,
// pixels, weights), which adds 4 products of bytes to every lane, exactly, and to_float, load, store,
// multiply, add, and kTilePixels by kTilePanels, the tile its registers hold.
#pragma once

#include "kernels/kernels.h"

namespace latentbit {

#define LATENTBIT_UNROLL_ALL _Pragma("GCC unroll 16")

template <class Lanes>
struct ByteRows {
  using Ints = typename Lanes::Ints;
  using Bytes = typename Lanes::Bytes;
  using Floats = typename Lanes::Floats;
  static constexpr int kLanes = Lanes::kLanes, kPanelVectors = kConvBlock / kLanes;

  // P output pixels by V vectors of channels.
  template <int P, int V>
  static void tile(const ByteConvShape& s, const int8_t* panels, const int32_t* offsets, const float* scales,
                   const float* bias, const uint16_t* classes, const uint8_t* x, float* out, int out_stride,
                   int channels) {
    const size_t panel = static_cast<size_t>(s.channels) * s.kernel_h * s.words * 4 * kConvBlock;
    Floats total[P][V];
    Ints sums[P][V];
    LATENTBIT_UNROLL_ALL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v)
        total[p][v] = Lanes::load(bias + static_cast<size_t>(classes[p]) * s.out_padded + v * kLanes);
    const int8_t* w = panels;
    for (int c = 0; c < s.channels; ++c) {
      if (c == 0 || !s.one_scale)
        LATENTBIT_UNROLL_ALL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v)
            sums[p][v] = Lanes::start(offsets + static_cast<size_t>(c) * s.out_padded + v * kLanes);
      const uint8_t* row = x + c * s.plane;
      for (int ky = 0; ky < s.kernel_h; ++ky, row += s.dilation_h * s.row)
        for (int i = 0; i < s.words; ++i, w += 4 * kConvBlock) {
          Bytes weights[V];
          LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v) weights[v] = Lanes::weights(
              w + (v / kPanelVectors) * panel + static_cast<size_t>(v % kPanelVectors) * 4 * kLanes);
          LATENTBIT_UNROLL_ALL for (int p = 0; p < P; ++p) {
            const Bytes pixels = Lanes::spread(row + 4 * i + static_cast<size_t>(p) * s.stride_w);
            LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v) sums[p][v] =
                Lanes::dot(sums[p][v], pixels, weights[v]);
          }
        }
      if (s.one_scale && c + 1 < s.channels) continue;
      const float* scale = scales + static_cast<size_t>(c) * s.out_padded;
      LATENTBIT_UNROLL_ALL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v)
          total[p][v] = Lanes::add(
              total[p][v], Lanes::multiply(Lanes::to_float(sums[p][v]), Lanes::load(scale + v * kLanes)));
    }
    LATENTBIT_UNROLL_ALL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v) {
      float* to = out + static_cast<size_t>(p) * out_stride + v * kLanes;
      const int left = channels - v * kLanes;
      if (left >= kLanes) {
        Lanes::store(to, total[p][v]);
      } else {
        float lane[kLanes];
        Lanes::store(lane, total[p][v]);
        for (int i = 0; i < left; ++i) to[i] = lane[i];
      }
    }
  }

  template <int P, int V>
  static void tile_of(int pixels, const ByteConvShape& s, const int8_t* panels, const int32_t* offsets,
                      const float* scales, const float* bias, const uint16_t* classes, const uint8_t* x,
                      float* out, int out_stride, int channels) {
    if (pixels >= P)
      tile<P, V>(s, panels, offsets, scales, bias, classes, x, out, out_stride, channels);
    else if constexpr (P > 1)
      tile_of<P - 1, V>(pixels, s, panels, offsets, scales, bias, classes, x, out, out_stride, channels);
  }

  template <int kPanels>
  static int panels_of(const ByteConvShape& s, int c, const int8_t* panels, const float* scales,
                       const float* bias, const uint16_t* classes, const uint8_t* x, int pixels, float* out,
                       int out_stride) {
    constexpr int kPixels = Lanes::kTilePixels;
    const size_t panel = static_cast<size_t>(s.channels) * s.kernel_h * s.words * 4 * kConvBlock;
    for (; c + (kPanels - 1) * kConvBlock < s.out_channels; c += kPanels * kConvBlock)
      for (int p = 0; p < pixels; p += kPixels)
        tile_of<kPixels, kPanels * kPanelVectors>(
            pixels - p, s, panels + panel * (c / kConvBlock), s.offsets + c, scales + c, bias + c,
            classes + p, x + static_cast<size_t>(p) * s.stride_w,
            out + static_cast<size_t>(p) * out_stride + c, out_stride, s.out_channels - c);
    return c;
  }

  static void conv_row_bytes(const ByteConvShape& s, const int8_t* panels, const float* scales,
                             const float* bias, const uint16_t* classes, const uint8_t* frame, int oy,
                             int pixels, float* out, int out_stride) {
    const uint8_t* x = frame + static_cast<size_t>(oy) * s.stride_h * s.row;
    int c = 0;
    if constexpr (Lanes::kTilePanels > 1)
      c = panels_of<Lanes::kTilePanels>(s, c, panels, scales, bias, classes, x, pixels, out, out_stride);
    panels_of<1>(s, c, panels, scales, bias, classes, x, pixels, out, out_stride);
  }
};

}  // namespace latentbit
