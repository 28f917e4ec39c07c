// Portable kernels: the reference that the others are tested against, and what runs where nothing faster
// does.
#include "kernels/scalar.h"

namespace latentbit {
namespace {

// Gathered form: for every pixel and tap the address of the input pixel's words, or null outside the image.
using Tap = const uint64_t*;

size_t weight_bytes(const BinaryShape& s) {
  return sizeof(uint64_t) * s.out_channels * s.window.taps() * s.words();
}

void pack_weights(const BinaryShape& s, const uint64_t* bits, uint8_t* packed) {
  auto* out = reinterpret_cast<uint64_t*>(packed);
  const size_t n = weight_bytes(s) / sizeof(uint64_t);
  for (size_t i = 0; i < n; ++i) out[i] = bits[i];
}

size_t gather_bytes(const BinaryShape& s, int pixels) { return sizeof(Tap) * s.window.taps() * pixels; }

void gather(const BinaryShape& s, const uint64_t* image, int first, int pixels, void* gathered, int* taps) {
  auto* out = static_cast<Tap*>(gathered);
  const Window& w = s.window;
  for (int p = 0; p < pixels; ++p) {
    const int oy = (first + p) / w.out_w, ox = (first + p) % w.out_w;
    taps[p] = 0;
    for (int ky = 0; ky < w.kernel_h; ++ky)
      for (int kx = 0; kx < w.kernel_w; ++kx) {
        const int source = w.source(oy, ox, ky, kx);
        *out++ = source < 0 ? nullptr : image + static_cast<size_t>(source) * s.words();
        taps[p] += source >= 0;
      }
  }
}

template <typename Count>
void count(const BinaryShape& s, const uint8_t* packed, const void* gathered, int from, int pixels, int block,
           Count* counts) {
  const int n_taps = s.window.taps(), words = s.words(), first = block * kBlock;
  const int channels = s.out_channels - first < kBlock ? s.out_channels - first : kBlock;
  const auto* weights = reinterpret_cast<const uint64_t*>(packed);
  const auto* tap = static_cast<const Tap*>(gathered) + static_cast<size_t>(from) * n_taps;
  for (int p = 0; p < pixels; ++p, tap += n_taps, counts += kBlock)
    for (int c = 0; c < channels; ++c) {
      const uint64_t* w = weights + static_cast<size_t>(first + c) * n_taps * words;
      int differing = 0;
      for (int t = 0; t < n_taps; ++t, w += words) {
        if (!tap[t]) continue;
        for (int i = 0; i < words; ++i) differing += __builtin_popcountll(tap[t][i] ^ w[i]);
      }
      counts[c] = static_cast<Count>(differing);
    }
}

template <typename Count>
void finish(const Finish& f, const Count* counts, const int* taps, int in_channels, int first, int pixels,
            int block) {
  const int first_channel = block * kBlock;
  const int channels = f.channels - first_channel < kBlock ? f.channels - first_channel : kBlock;
  for (int p = 0; p < pixels; ++p, counts += kBlock) {
    float values[kBlock];
    const int n = taps[p] * in_channels;
    if (f.dot_threshold) {
      uint64_t word = 0;
      for (int c = 0; c < channels; ++c)
        word |=
            static_cast<uint64_t>(n - 2 * static_cast<int>(counts[c]) < f.dot_threshold[first_channel + c])
            << c;
      f.bits[static_cast<size_t>(first + p) * words_for(f.channels) + block] = word ^ f.flip[block];
      continue;
    }
    for (int c = 0; c < channels; ++c) values[c] = static_cast<float>(n - 2 * static_cast<int>(counts[c]));
    finish_values(f, values, first + p, first_channel, channels);
  }
}

void finish_real(const Finish& f, const float* values, int first, int pixels) {
  for (int p = 0; p < pixels; ++p, values += f.channels)
    for (int c = 0; c < f.channels; c += kBlock)
      finish_values(f, values + c, first + p, c, f.channels - c < kBlock ? f.channels - c : kBlock);
}

void conv_row(const ConvShape& s, const float* panels, const float* bias, const float* frame, int oy,
              int pixels, float* out, int out_stride) {
  const size_t panel = static_cast<size_t>(s.kernel_h) * s.kernel_w * s.in_channels * kConvBlock;
  for (int p = 0; p < pixels; ++p)
    for (int c = 0; c < s.out_channels; ++c) {
      const float* w = panels + panel * (c / kConvBlock) + c % kConvBlock;
      float sum = bias[c];
      for (int ky = 0; ky < s.kernel_h; ++ky)
        for (int kx = 0; kx < s.kernel_w; ++kx) {
          const float* x = frame + static_cast<size_t>(oy * s.stride_h + ky * s.dilation_h) * s.row +
                           static_cast<size_t>(p * s.stride_w + kx * s.dilation_w) * s.pixel;
          for (int i = 0; i < s.in_channels; ++i, w += kConvBlock) sum += x[i] * *w;
        }
      out[static_cast<size_t>(p) * out_stride + c] = sum;
    }
}

void normalise(const uint8_t* in, size_t n, float mean, float std, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = (static_cast<float>(in[i]) / 255.0f - mean) / std;
}

void split_pixels(const uint8_t* pixels, int channels, int n, uint8_t* out, size_t plane) {
  for (int c = 0; c < channels; ++c)
    for (int p = 0; p < n; ++p) out[c * plane + p] = pixels[static_cast<size_t>(p) * channels + c];
}

void conv_row_bytes(const ByteConvShape& s, const int8_t* panels, const float* scales, const float* bias,
                    const uint16_t* classes, const uint8_t* frame, int oy, int pixels, float* out,
                    int out_stride) {
  const size_t panel = static_cast<size_t>(s.channels) * s.kernel_h * s.words * 4 * kConvBlock;
  for (int p = 0; p < pixels; ++p)
    for (int o = 0; o < s.out_channels; ++o) {
      const int8_t* w = panels + panel * (o / kConvBlock) + 4 * (o % kConvBlock);
      float y = bias[static_cast<size_t>(classes[p]) * s.out_padded + o];
      int32_t sum = 0;
      for (int c = 0; c < s.channels; ++c) {
        for (int ky = 0; ky < s.kernel_h; ++ky) {
          const uint8_t* x =
              frame + c * s.plane +
              (static_cast<size_t>(oy) * s.stride_h + static_cast<size_t>(ky) * s.dilation_h) * s.row +
              static_cast<size_t>(p) * s.stride_w;
          for (int i = 0; i < s.words; ++i, w += 4 * kConvBlock)
            for (int k = 0; k < 4; ++k) sum += x[4 * i + k] * w[k];
        }
        if (s.one_scale && c + 1 < s.channels) continue;
        const float part = static_cast<float>(sum) * scales[static_cast<size_t>(c) * s.out_padded + o];
        y = y + part;
        sum = 0;
      }
      out[static_cast<size_t>(p) * out_stride + o] = y;
    }
}

void sign_planar(const Finish& f, const float* planar, int plane, int first, int pixels) {
  const int words = words_for(f.channels);
  for (int p = first; p < first + pixels; ++p)
    for (int i = 0; i < words; ++i) {
      uint64_t word = 0;
      for (int c = i * kWordBits; c < f.channels && c < (i + 1) * kWordBits; ++c)
        word |= static_cast<uint64_t>(planar[static_cast<size_t>(c) * plane + p] < f.threshold[c])
                << (c % kWordBits);
      f.bits[static_cast<size_t>(p) * words + i] = word ^ f.flip[i];
    }
}

void transpose(const float* in, int rows, int columns, int in_stride, float* out, int out_stride) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      out[static_cast<size_t>(j) * out_stride + i] = in[static_cast<size_t>(i) * in_stride + j];
}

void max_pool_row(const Window& w, int channels, const float* image, int oy, float* out) {
  for (int ox = 0; ox < w.out_w; ++ox, out += channels)
    for (int c = 0; c < channels; ++c) {
      bool any = false;
      float best = 0;
      for (int ky = 0; ky < w.kernel_h; ++ky)
        for (int kx = 0; kx < w.kernel_w; ++kx) {
          const int source = w.source(oy, ox, ky, kx);
          if (source < 0) continue;
          const float x = image[static_cast<size_t>(source) * channels + c];
          if (!any || x > best) best = x;
          any = true;
        }
      out[c] = best;
    }
}

}  // namespace

void finish_values(const Finish& f, const float* values, int pixel, int first_channel, int channels) {
  const float* residual =
      f.residual ? f.residual + static_cast<size_t>(pixel) * f.residual_channels : nullptr;
  float* real = f.real ? f.real + static_cast<size_t>(pixel) * f.channels + first_channel : nullptr;
  uint64_t word = 0;
  for (int i = 0; i < channels; ++i) {
    const int c = first_channel + i;
    float y = values[i];
    if (f.scale) y = y * f.scale[c] + f.bias[c];
    if (residual) y += residual[c % f.residual_channels];
    switch (f.activation) {
      case Activation::none:
        break;
      case Activation::relu:
        y = y < 0 ? 0 : y;
        break;
      case Activation::prelu:
        y = y < 0 ? y * f.slope[c] : y;
        break;
      case Activation::clamp:
        y = y < f.low ? f.low : y > f.high ? f.high : y;
        break;
    }
    if (real) real[i] = y;
    if (f.bits) word |= static_cast<uint64_t>(y < f.threshold[c]) << (i % kWordBits);
  }
  if (f.bits) {
    const int at = first_channel / kWordBits;
    f.bits[static_cast<size_t>(pixel) * words_for(f.channels) + at] = word ^ f.flip[at];
  }
}

BinaryKernels<uint32_t> wide_scalar_kernels() {
  return {weight_bytes, pack_weights, gather_bytes, gather, count<uint32_t>, finish<uint32_t>};
}

const Kernels& scalar_kernels() {
  static const Kernels kernels = {
      "scalar",
      {weight_bytes, pack_weights, gather_bytes, gather, count<uint16_t>, finish<uint16_t>},
      wide_scalar_kernels(),
      conv_row,
      finish_real,
      sign_planar,
      transpose,
      max_pool_row,
      normalise,
      split_pixels,
      conv_row_bytes,
      nullptr,
      nullptr};
  return kernels;
}

}  // namespace latentbit
