#include "steps/byte_conv.h"

#include <algorithm>
#include <cstring>

#include "kernels/taps.h"

namespace latentbit {
namespace {

constexpr int kMaxSums = 1 << 14;             // products of one sum: 2^14 * 255 * 127 < 2^31
constexpr size_t kMaxBias = size_t{1} << 22;  // floats

// The class of every position, and the taps that each class sees.
template <typename Taps>
std::vector<TapRange> classify(int n, const Taps& taps, std::vector<uint16_t>& classes) {
  std::vector<TapRange> found;
  classes.resize(n);
  for (int i = 0; i < n; ++i) {
    const TapRange range = taps(i);
    size_t k = 0;
    while (k < found.size() && (found[k].begin != range.begin || found[k].end != range.end)) ++k;
    if (k == found.size()) found.push_back(range);
    classes[i] = static_cast<uint16_t>(k);
  }
  return found;
}

}  // namespace

bool ByteConv::fits(const Window& w, int channels, int out_channels) {
  const int64_t padded = round_up(out_channels, kBlock);
  // A class is where the window begins to leave the image on either side: at most two per tap and one inside.
  const int64_t rows = std::min(w.out_h, 2 * w.kernel_h + 1), columns = std::min(w.out_w, 2 * w.kernel_w + 1);
  return w.dilation_w == 1 && int64_t{channels} * w.taps() <= kMaxSums &&
         rows * columns * padded <= static_cast<int64_t>(kMaxBias) && w.kernel_h < (1 << 10);
}

ByteConv::ByteConv(const Window& window, int channels, int out_channels, const int8_t* weights,
                   const float* weight_scale, const float* bias, const Pixels& pixels)
    : window_(window), channels_(channels), out_channels_(out_channels) {
  const Window& w = window_;
  out_padded_ = round_up(out_channels, kBlock);
  frame_w_ = (w.out_w - 1) * w.stride_w + w.kernel_w;
  words_ = (w.kernel_w + 3) / 4;
  one_scale_ = std::all_of(pixels.std.begin(), pixels.std.end(), [&](float s) { return s == pixels.std[0]; });

  const size_t panel = static_cast<size_t>(channels) * w.kernel_h * words_ * 4 * kConvBlock;
  panels_.assign(panel * (out_padded_ / kConvBlock), 0);
  scales_.assign(static_cast<size_t>(channels) * out_padded_, 0);
  const auto weight = [&](int o, int c, int ky, int kx) {
    return weights[((static_cast<size_t>(o) * channels + c) * w.kernel_h + ky) * w.kernel_w + kx];
  };
  for (int o = 0; o < out_channels; ++o)
    for (int c = 0; c < channels; ++c) {
      scales_[static_cast<size_t>(c) * out_padded_ + o] =
          static_cast<float>(double{weight_scale[o]} / (255.0 * double{pixels.std[c]}));
      for (int ky = 0; ky < w.kernel_h; ++ky)
        for (int kx = 0; kx < w.kernel_w; ++kx) {
          const size_t word = (static_cast<size_t>(c) * w.kernel_h + ky) * words_ + kx / 4;
          panels_[panel * (o / kConvBlock) + (word * kConvBlock + o % kConvBlock) * 4 + kx % 4] =
              weight(o, c, ky, kx);
        }
    }

  offsets_.assign(scales_.size(), 0);
  for (int o = 0; o < out_channels; ++o)
    for (int c = 0; c < channels; ++c)
      for (int ky = 0; ky < w.kernel_h; ++ky)
        for (int kx = 0; kx < w.kernel_w; ++kx)
          offsets_[static_cast<size_t>(one_scale_ ? 0 : c) * out_padded_ + o] += 128 * weight(o, c, ky, kx);

  const std::vector<TapRange> down = classify(w.out_h, [&](int oy) { return taps_down(w, oy); }, row_class_);
  const std::vector<TapRange> across =
      classify(w.out_w, [&](int ox) { return taps_across(w, ox); }, column_class_);
  column_classes_ = static_cast<int>(across.size());
  bias_.assign(down.size() * across.size() * out_padded_, 0);
  float* to = bias_.data();
  for (const TapRange& rows : down)
    for (const TapRange& columns : across) {
      for (int o = 0; o < out_channels; ++o) {
        double mean = 0;
        for (int c = 0; c < channels; ++c) {
          int64_t sum = 0;
          for (int ky = rows.begin; ky < rows.end; ++ky)
            for (int kx = columns.begin; kx < columns.end; ++kx) sum += weight(o, c, ky, kx);
          mean += static_cast<double>(sum) * double{weight_scale[o]} * double{pixels.mean[c]} /
                  double{pixels.std[c]};
        }
        to[o] = static_cast<float>(double{bias[o]} - mean);
      }
      to += out_padded_;
    }
}

size_t ByteConv::weight_bytes() const {
  return panels_.size() + sizeof(float) * (scales_.size() + bias_.size()) +
         sizeof(int32_t) * offsets_.size() + sizeof(uint16_t) * (row_class_.size() + column_class_.size());
}

void ByteConv::fill(const Run& run, int image, int first, int frame_rows, uint8_t* frame) const {
  const Window& w = window_;
  const size_t plane = frame_row() * frame_rows, pixels = static_cast<size_t>(w.in_h) * w.in_w;
  const uint8_t* source = run.bytes + pixels * channels_ * image;
  const int left = std::min(w.pad_left, frame_w_);
  const int right = std::max(left, std::min(frame_w_, w.in_w + w.pad_left));
  for (int r = 0; r < frame_rows; ++r, frame += frame_row()) {
    const int y = first + r;
    const bool inside = y >= 0 && y < w.in_h;
    for (int c = 0; c < channels_; ++c) {
      uint8_t* row = frame + plane * c;
      if (!inside) {
        std::memset(row, 0, frame_row());
        continue;
      }
      std::memset(row, 0, left);
      std::memset(row + right, 0, frame_row() - right);
      if (!run.channels_last)
        std::memcpy(row + left, source + pixels * c + static_cast<size_t>(y) * w.in_w, right - left);
    }
    if (inside && run.channels_last)
      run.kernels->split_pixels(source + static_cast<size_t>(y) * w.in_w * channels_, channels_, right - left,
                                frame + left, plane);
  }
}

void ByteConv::row(const Run& run, const uint8_t* frame, int frame_rows, int at, int oy, float* out) const {
  const Window& w = window_;
  const ByteConvShape shape{channels_,  out_channels_,  out_padded_, frame_row(), frame_row() * frame_rows,
                            w.kernel_h, words_,         w.stride_h,  w.stride_w,  w.dilation_h,
                            one_scale_, offsets_.data()};
  run.kernels->conv_row_bytes(
      shape, panels_.data(), scales_.data(),
      bias_.data() + static_cast<size_t>(row_class_[oy]) * column_classes_ * out_padded_,
      column_class_.data(), frame, at, w.out_w, out, out_channels_);
}

}  // namespace latentbit
