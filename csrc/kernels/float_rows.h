// Rows of real convolutions and of max-pools for any kind of vector.
// Lanes brings Vector, kFloats (of one vector), load, store, broadcast, multiply_add and larger, and the
// tiles that its registers hold: kTilePixels by one panel of kConvBlock channels, and, where that leaves
// registers idle, kWideTilePixels by kWideTilePanels panels (else 0).
#pragma once
#include "kernels/scalar.h"
#include "kernels/taps.h"

namespace latentbit {

#define LATENTBIT_UNROLL_ALL _Pragma("GCC unroll 16")

template <class Lanes>
struct FloatRows {
  using Vector = typename Lanes::Vector;
  static constexpr int kFloats = Lanes::kFloats, kTilePixels = Lanes::kTilePixels;
  static constexpr int kPanelVectors = kConvBlock / kFloats;
  static constexpr int kLinearVectors = 8, kLinearChannels = kLinearVectors * kFloats;
  static constexpr int kWidePixels = Lanes::kWideTilePixels, kWidePanels = Lanes::kWideTilePanels;

  // P output pixels by V vectors of channels. Each tap row is a run of contiguous floats when taps touch; the
  // weights follow in the same order, kConvBlock channels per step. Panels beyond the first are panel floats
  // apart.
  template <int P, int V>
  static void tile(const ConvShape& s, const float* panels, const float* bias, size_t panel, const float* x,
                   float* out, int out_stride, int channels) {
    const int runs = s.dilation_w == 1 && s.pixel == s.in_channels ? 1 : s.kernel_w;
    const int length = s.in_channels * (s.kernel_w / runs), step = s.stride_w * s.pixel;
    Vector sum[P][V];
    LATENTBIT_UNROLL_ALL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v)
        sum[p][v] = Lanes::load(bias + v * kFloats);
    const float* w = panels;
    for (int ky = 0; ky < s.kernel_h; ++ky)
      for (int run = 0; run < runs; ++run) {
        const float* at = x + static_cast<size_t>(ky) * s.dilation_h * s.row +
                          static_cast<size_t>(run) * s.dilation_w * s.pixel;
        for (int i = 0; i < length; ++i, w += kConvBlock) {
          Vector weights[V];
          LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v) weights[v] =
              Lanes::load(w + (v / kPanelVectors) * panel + (v % kPanelVectors) * kFloats);
          LATENTBIT_UNROLL_ALL for (int p = 0; p < P; ++p) {
            const Vector value = Lanes::broadcast(at + i + p * step);
            LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v) sum[p][v] =
                Lanes::multiply_add(value, weights[v], sum[p][v]);
          }
        }
      }
    LATENTBIT_UNROLL_ALL for (int p = 0; p < P; ++p) LATENTBIT_UNROLL_ALL for (int v = 0; v < V; ++v) {
      float* to = out + static_cast<size_t>(p) * out_stride + v * kFloats;
      const int left = channels - v * kFloats;
      if (left >= kFloats) {
        Lanes::store(to, sum[p][v]);
      } else {
        float lane[kFloats];
        Lanes::store(lane, sum[p][v]);
        for (int i = 0; i < left; ++i) to[i] = lane[i];
      }
    }
  }

  // The last tile of a row has fewer pixels than the others.
  template <int P, int V>
  static void tile_of(int pixels, const ConvShape& s, const float* panels, const float* bias, size_t panel,
                      const float* x, float* out, int out_stride, int channels) {
    if (pixels >= P)
      tile<P, V>(s, panels, bias, panel, x, out, out_stride, channels);
    else if constexpr (P > 1)
      tile_of<P - 1, V>(pixels, s, panels, bias, panel, x, out, out_stride, channels);
  }

  // All pixels of a row for the channels of some panels.
  template <int P, int V>
  static void row_of(const ConvShape& s, const float* panels, const float* bias, size_t panel, const float* x,
                     int pixels, float* out, int out_stride, int channels) {
    for (int p = 0; p < pixels; p += P)
      tile_of<P, V>(pixels - p, s, panels, bias, panel, x + static_cast<size_t>(p) * s.stride_w * s.pixel,
                    out + static_cast<size_t>(p) * out_stride, out_stride, channels);
  }

  static void conv_row(const ConvShape& s, const float* panels, const float* bias, const float* frame, int oy,
                       int pixels, float* out, int out_stride) {
    const size_t panel = static_cast<size_t>(s.kernel_h) * s.kernel_w * s.in_channels * kConvBlock;
    const float* x = frame + static_cast<size_t>(oy) * s.stride_h * s.row;
    int c = 0;
    if (pixels == 1)  // a linear layer: more channels at once hide the latency of the additions
      for (; c + kLinearChannels <= s.out_channels; c += kLinearChannels)
        tile<1, kLinearVectors>(s, panels + panel * (c / kConvBlock), bias + c, panel, x, out + c, out_stride,
                                s.out_channels - c);
    if constexpr (kWidePanels > 0)
      for (; c + (kWidePanels - 1) * kConvBlock < s.out_channels; c += kWidePanels * kConvBlock)
        row_of<kWidePixels, kWidePanels * kPanelVectors>(s, panels + panel * (c / kConvBlock), bias + c,
                                                         panel, x, pixels, out + c, out_stride,
                                                         s.out_channels - c);
    for (; c < s.out_channels; c += kConvBlock)
      row_of<kTilePixels, kPanelVectors>(s, panels + panel * (c / kConvBlock), bias + c, panel, x, pixels,
                                         out + c, out_stride, s.out_channels - c);
  }

  static void max_pool_row(const Window& w, int channels, const float* image, int oy, float* out) {
    if (channels % kFloats) {
      scalar_kernels().max_pool_row(w, channels, image, oy, out);
      return;
    }
    const TapRange down = taps_down(w, oy), inner = inner_outputs(w);
    const ptrdiff_t pixel = static_cast<ptrdiff_t>(w.dilation_w) * channels;
    const ptrdiff_t row = static_cast<ptrdiff_t>(w.dilation_h) * w.in_w * channels;
    const float* top =
        image + static_cast<ptrdiff_t>(oy * w.stride_h - w.pad_top) * w.in_w * channels + down.begin * row;
    for (int ox = 0; ox < w.out_w; ++ox, out += channels) {
      const bool whole = ox >= inner.begin && ox < inner.end;
      const TapRange across = whole ? TapRange{0, w.kernel_w} : taps_across(w, ox);
      const float* corner =
          top + static_cast<ptrdiff_t>(ox * w.stride_w - w.pad_left) * channels + across.begin * pixel;
      for (int c = 0; c < channels; c += kFloats) {
        const float* from = corner + c;
        Vector best = Lanes::load(from);
        for (int ky = down.begin; ky < down.end; ++ky, from += row) {
          const float* at = from;
          for (int kx = across.begin; kx < across.end; ++kx, at += pixel)
            best = Lanes::larger(Lanes::load(at), best);
        }
        Lanes::store(out + c, best);
      }
    }
  }
};

}  // namespace latentbit
