// From accumulators to memory with AVX2: scale, shortcut, activation, sign and pack, in one pass.
#include <immintrin.h>

#include "kernels_avx2.h"
#include "kernels_scalar.h"

namespace latentbit {
namespace {

constexpr int kLane = 8;

// Multiply and add stay apart, as in the portable kernel: both then round alike, and every sign agrees.
__m256 scaled(const Finish& f, __m256 y, int c) {
  return f.scale ? _mm256_add_ps(_mm256_mul_ps(y, _mm256_loadu_ps(f.scale + c)), _mm256_loadu_ps(f.bias + c)) : y;
}

__m256 activated(const Finish& f, __m256 y, int c) {
  switch (f.activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return _mm256_max_ps(_mm256_setzero_ps(), y);
    case Activation::prelu:  // blends on the sign bit: -0 * slope is a zero either way
      return _mm256_blendv_ps(y, _mm256_mul_ps(y, _mm256_loadu_ps(f.slope + c)), y);
    case Activation::hardtanh:
      return _mm256_min_ps(_mm256_set1_ps(1), _mm256_max_ps(_mm256_set1_ps(-1), y));
  }
  return y;
}

// 8 channels from c on of one pixel; returns their sign bits.
unsigned finish_lane(const Finish& f, __m256 y, const float* residual, float* real, int c) {
  y = scaled(f, y, c);
  if (residual) y = _mm256_add_ps(y, _mm256_loadu_ps(residual + c));
  y = activated(f, y, c);
  if (real) _mm256_storeu_ps(real + c, y);
  if (!f.bits) return 0;
  return _mm256_movemask_ps(_mm256_cmp_ps(y, _mm256_loadu_ps(f.threshold + c), _CMP_LT_OQ));
}

__m256i dots_of(const uint16_t* counts, __m256i n) {
  const __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i*>(counts));
  return _mm256_sub_epi16(n, _mm256_add_epi16(x, x));
}

__m256 to_float(__m128i dots) { return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(dots)); }

uint64_t threshold_word(const int32_t* threshold, const uint16_t* counts, __m256i n) {
  uint64_t word = 0;
  for (int i = 0; i < kBlock; i += 16) {
    const __m256i dots = dots_of(counts + i, n);
    const __m128i halves[2] = {_mm256_castsi256_si128(dots), _mm256_extracti128_si256(dots, 1)};
    for (int k = 0; k < 2; ++k) {
      const __m256i limit = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(threshold + i + 8 * k));
      const __m256i less = _mm256_cmpgt_epi32(limit, _mm256_cvtepi16_epi32(halves[k]));
      const uint64_t mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(less)));
      word |= mask << (i + 8 * k);
    }
  }
  return word;
}

uint64_t tail_mask(int channels) { return channels < kBlock ? (uint64_t{1} << channels) - 1 : ~uint64_t{0}; }

}  // namespace

void finish_counts_avx2(const Finish& f, const uint16_t* counts, const int* taps, int in_channels, int first,
                        int pixels, int block) {
  const int first_channel = block * kBlock, words = words_for(f.channels);
  const int channels = f.channels - first_channel < kBlock ? f.channels - first_channel : kBlock;
  // The shortcut may repeat its channels: then it must not wrap within a vector.
  const bool whole = channels % kLane == 0 && f.residual_channels % kLane == 0;
  const int wrap = f.residual_channels ? first_channel / f.residual_channels * f.residual_channels : 0;
  const bool wraps_inside = f.residual && first_channel + channels > wrap + f.residual_channels;
  for (int p = 0; p < pixels; ++p, counts += kBlock) {
    const size_t pixel = static_cast<size_t>(first + p);
    const __m256i n = _mm256_set1_epi16(static_cast<int16_t>(taps[p] * in_channels));
    if (f.dot_threshold) {
      const uint64_t word = threshold_word(f.dot_threshold + first_channel, counts, n) & tail_mask(channels);
      f.bits[pixel * words + block] = word ^ f.flip[block];
      continue;
    }
    if (!whole) {
      float values[kBlock];
      for (int c = 0; c < channels; ++c) values[c] = static_cast<float>(taps[p] * in_channels - 2 * counts[c]);
      finish_values(f, values, static_cast<int>(pixel), first_channel, channels);
      continue;
    }
    const float* shortcut = f.residual ? f.residual + pixel * f.residual_channels - wrap : nullptr;
    float* real = f.real ? f.real + pixel * f.channels : nullptr;
    uint64_t word = 0;
    for (int i = 0; i < channels; i += 16) {
      const __m256i dots = dots_of(counts + i, n);
      const __m128i halves[2] = {_mm256_castsi256_si128(dots), _mm256_extracti128_si256(dots, 1)};
      for (int k = 0; k < 2 && i + 8 * k < channels; ++k) {
        const int c = first_channel + i + 8 * k;
        const float* from = shortcut;
        if (wraps_inside) from -= (c - wrap) / f.residual_channels * f.residual_channels;
        const uint64_t mask = finish_lane(f, to_float(halves[k]), from, real, c);
        word |= mask << (i + 8 * k);
      }
    }
    if (f.bits) f.bits[pixel * words + block] = word ^ f.flip[block];
  }
}

void finish_real_avx2(const Finish& f, const float* values, int first, int pixels) {
  const int words = words_for(f.channels);
  const bool whole = f.channels % kLane == 0 && (!f.residual || f.residual_channels == f.channels);
  for (int p = 0; p < pixels; ++p, values += f.channels) {
    const size_t pixel = static_cast<size_t>(first + p);
    for (int c = 0; c < f.channels; c += kBlock) {
      const int channels = f.channels - c < kBlock ? f.channels - c : kBlock;
      if (!whole) {
        finish_values(f, values + c, static_cast<int>(pixel), c, channels);
        continue;
      }
      const float* shortcut = f.residual ? f.residual + pixel * f.residual_channels : nullptr;
      float* real = f.real ? f.real + pixel * f.channels : nullptr;
      uint64_t word = 0;
      for (int i = 0; i < channels; i += kLane) {
        const uint64_t mask = finish_lane(f, _mm256_loadu_ps(values + c + i), shortcut, real, c + i);
        word |= mask << i;
      }
      if (f.bits) f.bits[pixel * words + c / kBlock] = word ^ f.flip[c / kBlock];
    }
  }
}

}  // namespace latentbit
