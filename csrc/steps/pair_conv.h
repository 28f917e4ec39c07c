// A real convolution of the network's input, two neighbouring outputs of a row at a time with fewer products
// than taps (Winograd). For 3 taps g and 4 samples x, the outputs
//   y0 = x0 g0 + x1 g1 + x2 g2   and   y1 = x1 g0 + x2 g1 + x3 g2
// take 4 products instead of 6:
//   m0 = (x0 - x2) g0                      y0 = m0 + m1 + m2
//   m1 = (x1 + x2) (g0 + g1 + g2) / 2      y1 = m1 - m2 + m3
//   m2 = (x2 - x1) (g0 - g1 + g2) / 2
//   m3 = (x3 - x1) g2
// and for 4 taps and 5 samples 5 instead of 8 (at the points 0, 1, -1, 2 and infinity). A row of 7 taps with
// stride 2 is 4 taps on the even samples and 3 on the odd ones: 9 products instead of 14. What depends on g
// is made once, what depends on x once per row, whatever the number of output channels; the products of all
// rows and channels are summed before the outputs are made of them. Rounding differs from that of the plain
// sum by a few units in the last place.
#pragma once

#include <vector>

#include "program.h"

namespace latentbit {

class PairConv {
 public:
  // weights are [out][channels][kernel_h][kernel_w].
  PairConv(const Window& window, int channels, int out_channels, const float* weights, const float* bias);

  static bool fits(const Window& window, int channels);

  size_t weight_bytes() const { return sizeof(float) * (panels_.size() + bias_.size()); }
  size_t frame_floats(int frame_rows) const { return shape_.row * frame_rows + line_floats(); }
  void fill(const Run& run, int image, int first, int frame_rows, float* frame) const;
  // Convolution row `at` of those that the frame was filled for.
  void row(const Run& run, const float* frame, int at, float* out) const;

 private:
  int step() const { return 2 * window_.stride_w; }  // samples from one pair of outputs to the next
  size_t line_floats() const { return static_cast<size_t>(step()) * (shape_.pitch + 32) + 64; }

  Window window_;
  PairShape shape_;
  std::vector<float> panels_, bias_;
};

}  // namespace latentbit
