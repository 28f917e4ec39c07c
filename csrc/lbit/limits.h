// How much memory and work a packed file may ask for: the one place that says so, for the reader, the rules
// and the program. Python reads these numbers from here.
#pragma once

#include "lbit/text.h"

namespace latentbit {

constexpr int64_t kMaxFileBytes = int64_t{1} << 30;
constexpr int64_t kMaxHeaderBytes = int64_t{1} << 22;
constexpr int kMaxLayers = 10000;
constexpr int kMaxInputs = 64;     // of one layer
constexpr int kMaxName = 200;      // letters of a layer
constexpr int kMaxFullName = 240;  // letters of a tensor
constexpr int kMaxRank = 4;        // of a tensor

// All values of one image, padded copies of what windows slide over, and weights as the kernels hold them.
constexpr int64_t kMaxBytes = int64_t{1} << 31;
// Numbers in one value, and in the padded image that a window slides over: an int then holds every count of
// pixels, channels or numbers. Sizes in bytes, and products with a batch, are 64-bit.
constexpr int64_t kMaxNumbers = int64_t{1} << 28;
constexpr int64_t kMaxProducts = int64_t{1} << 40;  // per image: about 500 times those of ResNet-18
constexpr int64_t kMaxTaps = int64_t{1} << 24;  // products of one sum: float32 holds every integer up to here
constexpr int64_t kMaxSize = int64_t{1} << 20;  // of a kernel, stride, padding, dilation or group count
constexpr int kMaxThreads = 1024;
constexpr int kMaxBatch = 1 << 16;

constexpr int kWeightLanes = 16;  // real weights are held for so many output channels of a group at a time
constexpr int kBitLanes = 64;     // binary ones for so many, 4 input channels in a byte

// Of one layer and one image.
struct Cost {
  Wide value_bytes = 0, padded_bytes = 0, weight_bytes = 0, products = 0;

  Wide bytes() const { return value_bytes + padded_bytes + weight_bytes; }
};

inline Wide whole_lanes(Wide n, int lanes) { return (n + lanes - 1) / lanes * lanes; }
// float32 weights of a convolution with so many products per output.
inline Wide real_weight_bytes(Wide n_out, Wide groups, Wide taps) {
  return 4 * taps * groups * whole_lanes(n_out / groups, kWeightLanes);
}
// Binary weights of n_in channels under each of `taps` taps, one byte per 4 channels.
inline Wide binary_weight_bytes(Wide n_out, Wide groups, Wide n_in, Wide taps) {
  return (taps * ((n_in + 3) / 4) + 2) * groups * whole_lanes(n_out / groups, kBitLanes);
}

}  // namespace latentbit
