// From accumulators to memory with AVX2: scale, shortcut, activation, sign and pack, in one pass.
#include <immintrin.h>

#include "kernels_avx2.h"
#include "kernels_scalar.h"

namespace latentbit {
namespace {

constexpr int kLane = 8, kQuarter = 16;
using QuarterBits = uint16_t __attribute__((may_alias));  // a quarter of a word of bits

// What a finish does, known to the compiler: one loop per combination.
template <bool kScale, bool kResidual, Activation kActivation, bool kReal, bool kBits>
struct Way {
  // 8 channels; returns their sign bits. Multiply and add stay apart, as in the portable kernel: both then
  // round alike, and every sign agrees.
  static LATENTBIT_INLINE unsigned lane(__m256 y, const __m256* params, const float* residual, float* real) {
    if (kScale) y = _mm256_add_ps(_mm256_mul_ps(y, params[0]), params[1]);
    if (kResidual) y = _mm256_add_ps(y, _mm256_loadu_ps(residual));
    if (kActivation == Activation::relu) y = _mm256_max_ps(_mm256_setzero_ps(), y);
    // Blends on the sign bit: -0 * slope is a zero either way.
    if (kActivation == Activation::prelu) y = _mm256_blendv_ps(y, _mm256_mul_ps(y, params[2]), y);
    if (kActivation == Activation::hardtanh)
      y = _mm256_min_ps(_mm256_set1_ps(1), _mm256_max_ps(_mm256_set1_ps(-1), y));
    if (kReal) _mm256_storeu_ps(real, y);
    return kBits ? static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(y, params[3], _CMP_LT_OQ))) : 0;
  }

  static LATENTBIT_INLINE void load_params(const Finish& f, int c, __m256* params) {
    if (kScale) params[0] = _mm256_loadu_ps(f.scale + c), params[1] = _mm256_loadu_ps(f.bias + c);
    if (kActivation == Activation::prelu) params[2] = _mm256_loadu_ps(f.slope + c);
    if (kBits) params[3] = _mm256_loadu_ps(f.threshold + c);
  }

  // 16 channels from c on, for all pixels: the parameters stay in registers, and each 64 bytes of the real
  // result are touched once. Next(pixel, low half, high half) gives the values.
  template <typename Next>
  static LATENTBIT_INLINE void quarter_word(const Finish& f, int c, int first, int pixels, const Next& next) {
    __m256 low[4], high[4];
    load_params(f, c, low);
    load_params(f, c + kLane, high);
    const int words = words_for(f.channels);
    const uint16_t flip = static_cast<uint16_t>(f.flip[c / kWordBits] >> (c % kWordBits));
    const float* residual =
        kResidual ? f.residual + static_cast<size_t>(first) * f.residual_channels + c % f.residual_channels
                  : nullptr;
    float* real = kReal ? f.real + static_cast<size_t>(first) * f.channels + c : nullptr;
    auto* bits =
        kBits ? reinterpret_cast<QuarterBits*>(f.bits + static_cast<size_t>(first) * words) + c / kQuarter
              : nullptr;
    for (int p = 0; p < pixels; ++p) {
      __m256 y0, y1;
      next(p, y0, y1);
      const unsigned mask = lane(y0, low, residual, real);
      const unsigned mask1 = lane(y1, high, residual + kLane, real + kLane);
      if (kBits) *bits = static_cast<uint16_t>((mask | mask1 << kLane) ^ flip), bits += 4 * words;
      if (kResidual) residual += f.residual_channels;
      if (kReal) real += f.channels;
    }
  }
};

__m256i dots_of(const uint16_t* counts, __m256i n) {
  const __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i*>(counts));
  return _mm256_sub_epi16(n, _mm256_add_epi16(x, x));
}

__m256 to_float(__m128i dots) { return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(dots)); }

struct FromCounts {
  const uint16_t* counts;
  const int* taps;
  int in_channels;

  LATENTBIT_INLINE void operator()(int p, __m256& y0, __m256& y1) const {
    const __m256i dots =
        dots_of(counts + p * kBlock, _mm256_set1_epi16(static_cast<int16_t>(taps[p] * in_channels)));
    y0 = to_float(_mm256_castsi256_si128(dots));
    y1 = to_float(_mm256_extracti128_si256(dots, 1));
  }
};

struct FromReal {
  const float* values;
  int channels;

  LATENTBIT_INLINE void operator()(int p, __m256& y0, __m256& y1) const {
    y0 = _mm256_loadu_ps(values + static_cast<size_t>(p) * channels);
    y1 = _mm256_loadu_ps(values + static_cast<size_t>(p) * channels + kLane);
  }
};

template <typename Next>
using QuarterWord = void (*)(const Finish&, int c, int first, int pixels, const Next&);

// The loop for this finish, found one flag at a time.
template <typename Next, Activation kActivation, bool kScale, bool kResidual>
QuarterWord<Next> choose_outputs(const Finish& f) {
  if (f.real && f.bits) return Way<kScale, kResidual, kActivation, true, true>::template quarter_word<Next>;
  if (f.bits) return Way<kScale, kResidual, kActivation, false, true>::template quarter_word<Next>;
  return Way<kScale, kResidual, kActivation, true, false>::template quarter_word<Next>;
}

template <typename Next, bool... kFlags>
QuarterWord<Next> choose_activation(const Finish& f) {
  switch (f.activation) {
    case Activation::relu:
      return choose_outputs<Next, Activation::relu, kFlags...>(f);
    case Activation::prelu:
      return choose_outputs<Next, Activation::prelu, kFlags...>(f);
    case Activation::hardtanh:
      return choose_outputs<Next, Activation::hardtanh, kFlags...>(f);
    case Activation::none:
      break;
  }
  return choose_outputs<Next, Activation::none, kFlags...>(f);
}

template <typename Next>
QuarterWord<Next> choose(const Finish& f) {
  if (f.scale)
    return f.residual ? choose_activation<Next, true, true>(f) : choose_activation<Next, true, false>(f);
  return f.residual ? choose_activation<Next, false, true>(f) : choose_activation<Next, false, false>(f);
}

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

// Whether 16 channels at a time fit: no tail, and a repeated shortcut that never wraps among them.
bool in_quarter_words(const Finish& f) {
  return f.channels % kQuarter == 0 && (!f.residual || f.residual_channels % kQuarter == 0);
}

}  // namespace

void finish_counts_avx2(const Finish& f, const uint16_t* counts, const int* taps, int in_channels, int first,
                        int pixels, int block) {
  const int first_channel = block * kBlock, words = words_for(f.channels);
  const int channels = f.channels - first_channel < kBlock ? f.channels - first_channel : kBlock;
  if (!f.dot_threshold && in_quarter_words(f)) {
    const auto run = choose<FromCounts>(f);
    for (int i = 0; i < channels; i += kQuarter)
      run(f, first_channel + i, first, pixels, {counts + i, taps, in_channels});
    return;
  }
  for (int p = 0; p < pixels; ++p, counts += kBlock) {
    const int n = taps[p] * in_channels;
    if (f.dot_threshold) {
      const uint64_t word =
          threshold_word(f.dot_threshold + first_channel, counts, _mm256_set1_epi16(static_cast<int16_t>(n)));
      f.bits[static_cast<size_t>(first + p) * words + block] = (word & tail_mask(channels)) ^ f.flip[block];
      continue;
    }
    float values[kBlock];
    for (int c = 0; c < channels; ++c) values[c] = static_cast<float>(n - 2 * counts[c]);
    finish_values(f, values, first + p, first_channel, channels);
  }
}

void finish_real_avx2(const Finish& f, const float* values, int first, int pixels) {
  if (!in_quarter_words(f)) {
    scalar_kernels().finish_real(f, values, first, pixels);
    return;
  }
  const auto run = choose<FromReal>(f);
  for (int c = 0; c < f.channels; c += kQuarter) run(f, c, first, pixels, {values + c, f.channels});
}

}  // namespace latentbit
