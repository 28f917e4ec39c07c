// The convolution of an image whose pixels and weights are bytes: sums of integers, one scale per output
// channel and input channel. The network expects (x / 255 - mean) / std of a pixel x, so
//   y = sum over channels c of scale_c (sum over taps of w x) + bias,   scale_c = weight_scale / (255 std_c)
// where the mean of every tap inside the image is part of the bias: a padded tap is 0 after normalisation,
// and adds nothing. So the bias depends on which taps fall inside; there are few such classes of rows and
// columns.
#pragma once

#include <vector>

#include "program.h"

namespace latentbit {

class ByteConv {
 public:
  // weights are [out][channels][kernel_h][kernel_w], weight_scale and bias one per output.
  ByteConv(const Window& window, int channels, int out_channels, const int8_t* weights,
           const float* weight_scale, const float* bias, const Pixels& pixels);

  // Whether such a convolution can be computed this way: neighbouring taps, sums within 32 bits, few classes.
  static bool fits(const Window& window, int channels, int out_channels);

  size_t weight_bytes() const;
  size_t frame_bytes(int frame_rows) const { return frame_row() * frame_rows * channels_ + 4; }
  // Frame rows [0, frame_rows) from input row `first` on, zero outside the image.
  void fill(const Run& run, int image, int first, int frame_rows, uint8_t* frame) const;
  // Convolution row oy, which is row `at` of those that the frame was filled for.
  void row(const Run& run, const uint8_t* frame, int frame_rows, int at, int oy, float* out) const;

 private:
  size_t frame_row() const { return static_cast<size_t>(frame_w_) + 4; }  // words may read 3 bytes too many

  Window window_;
  int channels_, out_channels_, out_padded_, frame_w_, words_;
  bool one_scale_;
  std::vector<int8_t> panels_;
  std::vector<float> scales_, bias_;  // [channel][out], [row class][column class][out]
  std::vector<int32_t> offsets_;      // [channel][out]: see ByteConvShape
  std::vector<uint16_t> row_class_, column_class_;
  int column_classes_;
};

}  // namespace latentbit
