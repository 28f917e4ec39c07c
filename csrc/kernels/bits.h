// The bit convention, and the shape of a binary convolution. Nothing here may need the standard library:
// files compiled for one instruction set include it.
//
// Bit 1 means -1, bit 0 means +1. Channels last: a pixel is n_words little-endian 64-bit words, channel c is
// bit c % 64 of word c / 64, and tail bits are 0 in both operands, so that they cancel:
//   dot(a, b) = n - 2 popcount(a xor b)
// Zero padding is exact: a tap that falls outside the image adds nothing to the popcount nor to n.
#pragma once

#include <stddef.h>
#include <stdint.h>

// An inline function compiled for AVX2 could be the copy that the linker keeps for everyone: never leave one
// to it.
#define LATENTBIT_INLINE __attribute__((always_inline)) inline

// Kernels of x86: native, or in tests on any machine with emulated intrinsics (LATENTBIT_SIMDE).
#if defined(__x86_64__) || defined(LATENTBIT_SIMDE)
#define LATENTBIT_X86 1
#endif

namespace latentbit {

constexpr int kWordBits = 64;
constexpr int kBlock = 64;  // output channels that one call of a kernel handles: one word of the result
// Output pixels gathered together: taller bands share more of the rows they read. Where an output row is
// wider than this, a band lies within one row, so that it need not expand more than it reads.
constexpr int kBandPixels = 224;

static inline constexpr int words_for(int n_bits) { return (n_bits + kWordBits - 1) / kWordBits; }
static inline constexpr int round_up(int value, int multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Where the taps of a window fall.
struct Window {
  int in_h, in_w, out_h, out_w;
  int kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;

  LATENTBIT_INLINE int taps() const { return kernel_h * kernel_w; }
  LATENTBIT_INLINE int pixels() const { return out_h * out_w; }
  // Index of the input pixel under tap (ky, kx) of output pixel (oy, ox), or -1 outside the image.
  LATENTBIT_INLINE int source(int oy, int ox, int ky, int kx) const {
    const int y = oy * stride_h - pad_top + ky * dilation_h, x = ox * stride_w - pad_left + kx * dilation_w;
    return y < 0 || x < 0 || y >= in_h || x >= in_w ? -1 : y * in_w + x;
  }
};

// One group of a binary convolution; a linear layer is the 1x1 case.
struct BinaryShape {
  Window window;
  int in_channels, out_channels;

  LATENTBIT_INLINE int words() const { return words_for(in_channels); }
  LATENTBIT_INLINE int blocks() const { return (out_channels + kBlock - 1) / kBlock; }
};

}  // namespace latentbit
