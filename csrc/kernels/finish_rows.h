// From accumulators to memory for any kind of vector: scale, shortcut, activation, sign and pack, in one
// pass. Lanes works on 16 channels, in as many registers as it needs:
//   Vector, load, store, add, multiply    of 16 floats; multiplication and addition are never contracted
//   relu, prelu(y, slope), clamp(y, low, high)    NaN stays NaN
//   less(y, threshold)                    16 bits
//   from_counts(counts, n)                n - 2 count, for a row of 16 counts
//   dots_less(counts, n, threshold)       16 bits: n - 2 count < threshold, in integers
// It is a type local to the including file, so that every file gets its own copy, compiled for its own set.
#pragma once

#include "kernels/scalar.h"

namespace latentbit {

template <class Lanes>
struct FinishRows {
  using Vector = typename Lanes::Vector;
  using QuarterBits = uint16_t __attribute__((may_alias));  // a quarter of a word of bits
  static constexpr int kQuarter = 16;

  // What a finish does, known to the compiler: one loop per combination.
  template <bool kScale, bool kResidual, Activation kActivation, bool kReal, bool kBits>
  struct Way {
    // 16 channels from c on, for all pixels: the parameters stay in registers, and each 64 bytes of the real
    // result are touched once. next(pixel) gives the values.
    template <typename Next>
    static void quarter_word(const Finish& f, int c, int first, int pixels, const Next& next) {
      Vector scale, bias, slope, threshold;
      if (kScale) scale = Lanes::load(f.scale + c), bias = Lanes::load(f.bias + c);
      if (kActivation == Activation::prelu) slope = Lanes::load(f.slope + c);
      if (kBits) threshold = Lanes::load(f.threshold + c);
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
        Vector y = next(p);
        if (kScale) y = Lanes::add(Lanes::multiply(y, scale), bias);
        if (kResidual) y = Lanes::add(y, Lanes::load(residual)), residual += f.residual_channels;
        if (kActivation == Activation::relu) y = Lanes::relu(y);
        if (kActivation == Activation::prelu) y = Lanes::prelu(y, slope);
        if (kActivation == Activation::clamp) y = Lanes::clamp(y, f.low, f.high);
        if (kReal) Lanes::store(real, y), real += f.channels;
        if (kBits) *bits = static_cast<uint16_t>(Lanes::less(y, threshold) ^ flip), bits += 4 * words;
      }
    }
  };

  struct FromCounts {
    const uint16_t* counts;
    const int* taps;
    int in_channels;

    LATENTBIT_INLINE Vector operator()(int p) const {
      return Lanes::from_counts(counts + static_cast<size_t>(p) * kBlock, taps[p] * in_channels);
    }
  };

  struct FromReal {
    const float* values;
    int channels;

    LATENTBIT_INLINE Vector operator()(int p) const {
      return Lanes::load(values + static_cast<size_t>(p) * channels);
    }
  };

  template <typename Next>
  using QuarterWord = void (*)(const Finish&, int c, int first, int pixels, const Next&);

  // The loop for this finish, found one flag at a time.
  template <typename Next, Activation kActivation, bool kScale, bool kResidual>
  static QuarterWord<Next> choose_outputs(const Finish& f) {
    if (f.real && f.bits) return Way<kScale, kResidual, kActivation, true, true>::template quarter_word<Next>;
    if (f.bits) return Way<kScale, kResidual, kActivation, false, true>::template quarter_word<Next>;
    return Way<kScale, kResidual, kActivation, true, false>::template quarter_word<Next>;
  }

  template <typename Next, bool... kFlags>
  static QuarterWord<Next> choose_activation(const Finish& f) {
    switch (f.activation) {
      case Activation::relu:
        return choose_outputs<Next, Activation::relu, kFlags...>(f);
      case Activation::prelu:
        return choose_outputs<Next, Activation::prelu, kFlags...>(f);
      case Activation::clamp:
        return choose_outputs<Next, Activation::clamp, kFlags...>(f);
      case Activation::none:
        break;
    }
    return choose_outputs<Next, Activation::none, kFlags...>(f);
  }

  template <typename Next>
  static QuarterWord<Next> choose(const Finish& f) {
    if (f.scale)
      return f.residual ? choose_activation<Next, true, true>(f) : choose_activation<Next, true, false>(f);
    return f.residual ? choose_activation<Next, false, true>(f) : choose_activation<Next, false, false>(f);
  }

  static uint64_t tail_mask(int channels) {
    return channels < kBlock ? (uint64_t{1} << channels) - 1 : ~uint64_t{0};
  }

  // Whether 16 channels at a time fit: no tail, and a repeated shortcut that never wraps among them.
  static bool in_quarter_words(const Finish& f) {
    return f.channels % kQuarter == 0 && (!f.residual || f.residual_channels % kQuarter == 0);
  }

  static void finish_counts(const Finish& f, const uint16_t* counts, const int* taps, int in_channels,
                            int first, int pixels, int block) {
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
        uint64_t word = 0;
        for (int i = 0; i < kBlock; i += kQuarter)
          word |= static_cast<uint64_t>(Lanes::dots_less(counts + i, n, f.dot_threshold + first_channel + i))
                  << i;
        f.bits[static_cast<size_t>(first + p) * words + block] = (word & tail_mask(channels)) ^ f.flip[block];
        continue;
      }
      float values[kBlock];
      for (int c = 0; c < channels; ++c) values[c] = static_cast<float>(n - 2 * counts[c]);
      finish_values(f, values, first + p, first_channel, channels);
    }
  }

  static void finish_real(const Finish& f, const float* values, int first, int pixels) {
    if (!in_quarter_words(f)) {
      scalar_kernels().finish_real(f, values, first, pixels);
      return;
    }
    const auto run = choose<FromReal>(f);
    for (int c = 0; c < f.channels; c += kQuarter) run(f, c, first, pixels, {values + c, f.channels});
  }
};

}  // namespace latentbit
