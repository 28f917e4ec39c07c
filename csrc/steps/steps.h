// The steps a program is made of. Each constructor checks that values and arrays fit together and throws
// std::invalid_argument if not.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "program.h"

namespace latentbit {

struct Geometry {
  std::array<int, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1};
  std::array<int, 4> padding{0, 0, 0, 0};  // top, left, bottom, right

  Window over(int in_h, int in_w) const;  // throws if the kernel does not fit
};

std::unique_ptr<Step> binary_step(const Program&, int input, const uint64_t* bits, int out_channels,
                                  int groups, const Geometry&, FinishSpec);

struct Pooled {  // a max pooling that a convolution takes along
  Geometry geometry;
  FinishSpec finish;
};
struct ByteWeights {  // the same weights as bytes and one scale per output channel
  const int8_t* weights;
  const float* scale;
};
std::unique_ptr<Step> conv_step(const Program&, int input, const float* weights, const float* bias,
                                int out_channels, int groups, const Geometry&, FinishSpec,
                                const Pooled* pooled, const ByteWeights* bytes = nullptr);
std::unique_ptr<Step> max_pool_step(const Program&, int input, const Geometry&, FinishSpec);
std::unique_ptr<Step> avg_pool_step(const Program&, int input, const Geometry&, bool count_include_pad,
                                    FinishSpec);
std::unique_ptr<Step> bits_pool_step(const Program&, int input, const Geometry&, int output);
std::unique_ptr<Step> finish_step(const Program&, int input, FinishSpec);
std::unique_ptr<Step> concat_step(const Program&, const std::vector<int>& inputs, int output);
std::unique_ptr<Step> flatten_step(const Program&, int input, int output);
enum class Curve { sigmoid, silu, hard_sigmoid, hard_swish };
std::unique_ptr<Step> curve_step(const Program&, int input, Curve, FinishSpec);
// By a value of the same size, or by one pixel: a gate per channel.
std::unique_ptr<Step> multiply_step(const Program&, int input, int by, FinishSpec);

struct Places {  // along one axis: output i is in[from[i]] (1 - share[i]) + in[from[i] + 1] share[i]
  std::vector<int> from;
  std::vector<float> share;
};
std::unique_ptr<Step> resize_step(const Program&, int input, Places rows, Places columns, FinishSpec);
std::unique_ptr<Step> adaptive_pool_step(const Program&, int input, int height, int width, FinishSpec);
// The second half of a transposed convolution; the first is a 1x1 convolution to all taps of all channels.
// Of the padding only top and left count.
std::unique_ptr<Step> sum_taps_step(const Program&, int input, int groups, const Geometry&, int height,
                                    int width, FinishSpec);
std::unique_ptr<Step> reshape_step(const Program&, int input, int output);
std::unique_ptr<Step> permute_step(const Program&, int input, const std::array<int, 3>& order, int output);
// Signs of the input, which is planar.
std::unique_ptr<Step> sign_input_step(const Program&, FinishSpec);
std::unique_ptr<Step> channels_last_step(const Program&, int output);

}  // namespace latentbit
