#include "steps/pair_conv.h"

#include <algorithm>
#include <cstring>

namespace latentbit {
namespace {

// What multiplies the transformed samples; see pair_conv.h.
void three_taps(double g0, double g1, double g2, double* out) {
  out[0] = g0;
  out[1] = (g0 + g1 + g2) / 2;
  out[2] = (g0 - g1 + g2) / 2;
  out[3] = g2;
}

void four_taps(double g0, double g1, double g2, double g3, double* out) {
  out[0] = g0 / 2;
  out[1] = (g0 + g1 + g2 + g3) / 2;
  out[2] = (g0 - g1 + g2 - g3) / 6;
  out[3] = (g0 + 2 * g1 + 4 * g2 + 8 * g3) / 6;
  out[4] = g3;
}

}  // namespace

bool PairConv::fits(const Window& w, int channels) {
  const bool known = (w.kernel_w == 7 && w.stride_w == 2) || (w.kernel_w == 3 && w.stride_w == 1);
  return known && w.dilation_w == 1 && w.dilation_h == 1 && w.out_w >= 8 && channels <= 8;
}

PairConv::PairConv(const Window& window, int channels, int out_channels, const float* weights,
                   const float* bias)
    : window_(window) {
  const Window& w = window_;
  const int products = w.kernel_w == 7 ? 9 : 4, pairs = (w.out_w + 1) / 2;
  // Whole vectors of pairs, and rows that do not fall into the same sets of the cache.
  const int pitch = round_up(pairs, 16) + 8;
  shape_ = {channels, out_channels, w.kernel_h, w.stride_h,
            products, pairs,        pitch,      static_cast<size_t>(channels) * products * pitch};
  const size_t panel = static_cast<size_t>(w.kernel_h) * channels * products * kConvBlock;
  panels_.assign(panel * ((out_channels + kConvBlock - 1) / kConvBlock), 0);
  bias_.assign(round_up(out_channels, kConvBlock), 0);
  std::copy(bias, bias + out_channels, bias_.begin());
  for (int o = 0; o < out_channels; ++o)
    for (int c = 0; c < channels; ++c)
      for (int ky = 0; ky < w.kernel_h; ++ky) {
        const float* g = weights + ((static_cast<size_t>(o) * channels + c) * w.kernel_h + ky) * w.kernel_w;
        double made[9];
        if (products == 9) {
          four_taps(g[0], g[2], g[4], g[6], made);
          three_taps(g[1], g[3], g[5], made + 5);
        } else {
          three_taps(g[0], g[1], g[2], made);
        }
        for (int j = 0; j < products; ++j)
          panels_[panel * (o / kConvBlock) +
                  ((static_cast<size_t>(ky) * channels + c) * products + j) * kConvBlock + o % kConvBlock] =
              static_cast<float>(made[j]);
      }
}

void PairConv::fill(const Run& run, int image, int first, int frame_rows, float* frame) const {
  const Window& w = window_;
  float* line = frame + shape_.row * frame_rows;  // behind the frame
  const size_t samples = line_floats(), left = std::min<size_t>(w.pad_left, samples);
  const size_t inside = std::min<size_t>(w.in_w, samples - left),
               plane = static_cast<size_t>(w.in_h) * w.in_w;
  std::fill(line, line + samples, 0.0f);
  for (int r = 0; r < frame_rows; ++r, frame += shape_.row) {
    const int y = first + r;
    if (y < 0 || y >= w.in_h) {
      std::fill(frame, frame + shape_.row, 0.0f);
      continue;
    }
    for (int c = 0; c < shape_.channels; ++c) {
      std::memcpy(line + left, run.planar(image) + c * plane + static_cast<size_t>(y) * w.in_w,
                  sizeof(float) * inside);
      run.kernels->pairs->transform(shape_, line,
                                    frame + static_cast<size_t>(c) * shape_.products * shape_.pitch);
    }
  }
}

void PairConv::row(const Run& run, const float* frame, int at, float* out) const {
  run.kernels->pairs->conv_row(shape_, panels_.data(), bias_.data(), frame, at, window_.out_w, out,
                               shape_.out_channels);
}

}  // namespace latentbit
