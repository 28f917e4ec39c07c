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
// Signs of the input, which is planar.
std::unique_ptr<Step> sign_input_step(const Program&, FinishSpec);
std::unique_ptr<Step> channels_last_step(const Program&, int output);

}  // namespace latentbit
