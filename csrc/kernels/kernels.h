// The kernels every instruction set provides, as one table of function pointers per set. Plain functions on
// raw pointers: sizes were checked before.
#pragma once

#include "kernels/bits.h"

namespace latentbit {

enum class Activation { none, relu, prelu, clamp };

// What happens to a result between the accumulator and memory, in this order. Null means: not this one.
// Per-channel arrays are padded to a multiple of kBlock.
struct Finish {
  int channels = 0;
  const float* scale = nullptr;  // y = scale * value + bias
  const float* bias = nullptr;
  const float* residual = nullptr;  // y += residual[pixel][channel % residual_channels]
  int residual_channels = 0;
  Activation activation = Activation::none;
  const float* slope = nullptr;      // of prelu
  float low = 0, high = 0;           // of clamp
  float* real = nullptr;             // [pixel][channels]
  uint64_t* bits = nullptr;          // [pixel][words]: (y < threshold) xor flip
  const float* threshold = nullptr;  // zeros if the layer has none
  const uint64_t* flip = nullptr;
  const int32_t* dot_threshold = nullptr;  // instead of all the above: bit = (dot < dot_threshold) xor flip
};

// A binary convolution in three moves: gather the taps of a band of output pixels once, count differing bits
// for one block of output channels at a time, finish the block.
template <typename Count>
struct BinaryKernels {
  size_t (*weight_bytes)(const BinaryShape&);
  void (*pack_weights)(const BinaryShape&, const uint64_t* bits, uint8_t* packed);
  size_t (*gather_bytes)(const BinaryShape&, int pixels);
  // taps[i] = number of taps of pixel first + i that fall inside the image. At most kBandPixels pixels;
  // within one output row if those are longer.
  void (*gather)(const BinaryShape&, const uint64_t* image, int first, int pixels, void* gathered, int* taps);
  // For gathered pixels [first, first + pixels), first even; counts is [round_up(pixels, 2)][kBlock].
  void (*count)(const BinaryShape&, const uint8_t* packed, const void* gathered, int first, int pixels,
                int block, Count* counts);
  // dot = taps * in_channels - 2 count, then Finish, for `pixels` pixels from `first`, channels of one block.
  void (*finish)(const Finish&, const Count* counts, const int* taps, int in_channels, int first, int pixels,
                 int block);
};

// A real convolution over an input that was copied into a padded frame: rows of `row` floats.
struct ConvShape {
  int in_channels, out_channels;  // of one group
  int pixel;                      // floats from one pixel of the frame to the next
  int row;                        // floats from one row of the frame to the next
  int out_w, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
};
constexpr int kConvBlock =
    16;  // output channels of one weight panel: [block][ky][kx][in_channel][kConvBlock]

// A convolution of bytes over planes that were copied into padded frames; see byte_conv.h.
struct ByteConvShape {
  int channels, out_channels;
  int out_padded;     // from one row of scales or bias to the next
  size_t row, plane;  // bytes from one row of the frame to the next, from one channel to the next
  int kernel_h;
  int words;  // of a kernel row: 4 taps each; panels are [block][channel][ky][word][kConvBlock][4]
  int stride_h, stride_w, dilation_h;
  bool one_scale;  // the same for all input channels
  // [channel][out_padded]: 128 times the sum of the weights, of all channels if they have one scale. Kernels
  // that can only multiply signed bytes take 128 off every pixel and begin with this.
  const int32_t* offsets;
};

// A real convolution of two outputs at a time; see pair_conv.h.
struct PairShape {
  int channels, out_channels, kernel_h, stride_h;
  int products;  // for two outputs, one channel and one kernel row: 9 of 7 taps with stride 2, 4 of 3 taps
  int pairs;     // of a row
  int pitch;     // floats from one product's samples to the next
  size_t row;    // floats from one row of the frame to the next: [channel][product][pair]
};
struct PairKernels {
  // One channel of one row: `line` is padded with zeros; writes whole vectors of 16 pairs.
  void (*transform)(const PairShape&, const float* line, float* out);
  // As conv_row; panels are [block][ky][channel][product][kConvBlock].
  void (*conv_row)(const PairShape&, const float* panels, const float* bias, const float* frame, int oy,
                   int pixels, float* out, int out_stride);
};

struct Kernels {
  const char* name;
  BinaryKernels<uint16_t> narrow;  // for dot products of up to kNarrowBits
  BinaryKernels<uint32_t> wide;
  // The first `pixels` output pixels of row oy, all channels, into out: [pixel][out_stride].
  // bias is padded to a multiple of kConvBlock.
  void (*conv_row)(const ConvShape&, const float* panels, const float* bias, const float* frame, int oy,
                   int pixels, float* out, int out_stride);
  // Finish of a real value: values is [pixels][channels] and may be finish.real.
  void (*finish_real)(const Finish&, const float* values, int first, int pixels);
  // Signs of a planar tensor [channel][plane] as Finish.bits: pixels [first, first + pixels).
  void (*sign_planar)(const Finish&, const float* planar, int plane, int first, int pixels);
  // out[j][i] = in[i][j] for i < rows, j < columns; strides are those of the rows of each.
  void (*transpose)(const float* in, int rows, int columns, int in_stride, float* out, int out_stride);
  // One output row of a pooling over [pixel][channels]; max ignores what lies outside.
  void (*max_pool_row)(const Window&, int channels, const float* image, int oy, float* out);
  // out[i] = (in[i] / 255 - mean) / std, each operation rounded.
  void (*normalise)(const uint8_t* in, size_t n, float mean, float std, float* out);
  // The channels of n pixels to planes that are `plane` bytes apart.
  void (*split_pixels)(const uint8_t* pixels, int channels, int n, uint8_t* out, size_t plane);
  // As conv_row, for bytes: out = bias[class of the pixel] + sum of scale * integer sum, channel by channel,
  // each operation rounded. Null where it would not be faster than normalising and conv_row.
  void (*conv_row_bytes)(const ByteConvShape&, const int8_t* panels, const float* scales, const float* bias,
                         const uint16_t* classes, const uint8_t* frame, int oy, int pixels, float* out,
                         int out_stride);
  const PairKernels* pairs;  // null where they would not be faster than conv_row
  // The kernels whose `narrow` suits a layer best, if they need not be these; null if they always are.
  const Kernels& (*best_for)(const BinaryShape&);
};

// The set to take the binary kernels of a layer from.
inline const Kernels& binary_kernels_for(const Kernels& kernels, const BinaryShape& shape) {
  return kernels.best_for ? kernels.best_for(shape) : kernels;
}

constexpr int kNarrowBits = 32767;  // 16-bit arithmetic on n - 2 popcount is exact up to here

const Kernels& scalar_kernels();
#if defined(LATENTBIT_X86)
const Kernels& avx2_kernels();
const Kernels& amx_kernels();            // those of avx512_kernels, binary convolutions in tiles of bytes
const Kernels& avx512_kernels();         // with VPOPCNTDQ: Ice Lake, Zen 4 and later
const Kernels& avx512bw_vnni_kernels();  // without VPOPCNTDQ: Cascade Lake
const Kernels& avx512bw_kernels();       // without VNNI too: Skylake-X
#endif
#if defined(__aarch64__)
const Kernels& neon_kernels();
const Kernels& neon_dot_kernels();  // with the products of bytes of Armv8.2
#endif

}  // namespace latentbit
