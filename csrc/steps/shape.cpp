// Element-wise steps and those that only move values.
#include <algorithm>
#include <cstring>

#include "steps/checks.h"
#include "steps/steps.h"

namespace latentbit {
namespace {

constexpr int kBandPixels = 64;
constexpr int kShare = 32;    // channels that one thread moves at a time
constexpr int kPixels = 512;  // or pixels

class FinishStep final : public Step {
 public:
  explicit FinishStep(FinishSpec finish) : finish_(std::move(finish)) {}

  void run(const Run& run) const override {
    const int pixels = run.value(inputs[0]).pixels(), bands = (pixels + kBandPixels - 1) / kBandPixels;
    run.each(bands, [&](int image, int part, int) {
      const int first = part * kBandPixels;
      const float* in = run.real(inputs[0], image) + static_cast<size_t>(first) * finish_.channels;
      run.kernels->finish_real(finish_.at(run, image), in, first, std::min(kBandPixels, pixels - first));
    });
  }

 private:
  FinishSpec finish_;
};

class ConcatStep final : public Step {
 public:
  void run(const Run& run) const override {
    const Value& out = run.value(outputs[0]);
    run.each(out.height, [&](int image, int y, int) {
      float* to = run.real(outputs[0], image) + static_cast<size_t>(y) * out.width * out.channels;
      for (int x = 0; x < out.width; ++x)
        for (int id : inputs) {
          const int c = run.value(id).channels;
          std::memcpy(to, run.real(id, image) + (static_cast<size_t>(y) * out.width + x) * c,
                      sizeof(float) * c);
          to += c;
        }
    });
  }
};

// [pixel][channel] to channel-major order, as torch flattens.
class FlattenStep final : public Step {
 public:
  void run(const Run& run) const override {
    const Value& in = run.value(inputs[0]);
    const int pixels = in.pixels(), shares = in.bits ? 1 : (in.channels + kShare - 1) / kShare;
    run.each(shares, [&](int image, int part, int) {
      const int first = part * kShare;
      if (in.bits) return flatten_bits(in, run.bits(inputs[0], image), run.bits(outputs[0], image));
      run.kernels->transpose(run.real(inputs[0], image) + first, pixels,
                             std::min(kShare, in.channels - first), in.channels,
                             run.real(outputs[0], image) + static_cast<size_t>(first) * pixels, pixels);
    });
  }

 private:
  static void flatten_bits(const Value& in, const uint64_t* from, uint64_t* to) {
    const int pixels = in.pixels(), words = words_for(in.channels);
    std::fill(to, to + words_for(in.channels * pixels), uint64_t{0});
    for (int c = 0; c < in.channels; ++c)
      for (int p = 0; p < pixels; ++p) {
        const uint64_t bit = from[static_cast<size_t>(p) * words + c / kWordBits] >> (c % kWordBits) & 1;
        const int at = c * pixels + p;
        to[at / kWordBits] |= bit << (at % kWordBits);
      }
  }
};

class ChannelsLastStep final : public Step {
 public:
  void run(const Run& run) const override {
    const Value& in = run.value(kInput);
    const int pixels = in.pixels(), shares = (pixels + kPixels - 1) / kPixels;
    run.each(shares, [&](int image, int part, int) {
      const int first = part * kPixels;
      run.kernels->transpose(run.planar(image) + first, in.channels, std::min(kPixels, pixels - first),
                             pixels, run.real(outputs[0], image) + static_cast<size_t>(first) * in.channels,
                             in.channels);
    });
  }
};

class SignInputStep final : public Step {
 public:
  explicit SignInputStep(FinishSpec finish) : finish_(std::move(finish)) {}

  void run(const Run& run) const override {
    const int pixels = run.value(kInput).pixels(), shares = (pixels + kPixels - 1) / kPixels;
    run.each(shares, [&](int image, int part, int) {
      const int first = part * kPixels;
      run.kernels->sign_planar(finish_.at(run, image), run.planar(image), pixels, first,
                               std::min(kPixels, pixels - first));
    });
  }

 private:
  FinishSpec finish_;
};

}  // namespace

std::unique_ptr<Step> finish_step(const Program& program, int input, FinishSpec finish) {
  const Value& in = program.value(input);
  need(!in.bits && input != kInput && finish.dot_threshold.empty(),
       "an element-wise step on the wrong value");
  check_finish(program, finish, in.channels, in.pixels());
  const Ends ends = ends_of(finish);
  auto step = std::make_unique<FinishStep>(std::move(finish));
  step->connect("elementwise", {input}, ends);
  step->in_place = input;
  return step;
}

std::unique_ptr<Step> concat_step(const Program& program, const std::vector<int>& inputs, int output) {
  const Value& out = program.value(output);
  int64_t channels = 0;
  for (int id : inputs) {
    const Value& in = program.value(id);
    need(!in.bits && id != kInput && in.height == out.height && in.width == out.width,
         "concat of unlike maps");
    channels += in.channels;
  }
  need(!out.bits && channels == out.channels, "concat into another shape");
  auto step = std::make_unique<ConcatStep>();
  step->connect("concat", inputs, {kNone, output, kNone});
  return step;
}

std::unique_ptr<Step> flatten_step(const Program& program, int input, int output) {
  const Value &in = program.value(input), &out = program.value(output);
  need(input != kInput && in.bits == out.bits && out.pixels() == 1, "flatten of the wrong value");
  need(int64_t{in.channels} * in.pixels() == out.channels, "flatten into another size");
  auto step = std::make_unique<FlattenStep>();
  step->connect("flatten", {input}, {kNone, output, kNone});
  return step;
}

std::unique_ptr<Step> sign_input_step(const Program& program, FinishSpec finish) {
  const Value& in = program.value(kInput);
  check_finish(program, finish, in.channels, in.pixels());
  need(finish.bits != kNone && finish.real == kNone && finish.residual == kNone && finish.scale.empty(),
       "only a sign");
  const Ends ends = ends_of(finish);
  auto step = std::make_unique<SignInputStep>(std::move(finish));
  step->connect("sign", {kInput}, ends);
  return step;
}

std::unique_ptr<Step> channels_last_step(const Program& program, int output) {
  const Value &in = program.value(kInput), &out = program.value(output);
  need(!out.bits && out.channels == in.channels && out.height == in.height && out.width == in.width,
       "input copy");
  auto step = std::make_unique<ChannelsLastStep>();
  step->connect("channels_last", {kInput}, {kNone, output, kNone});
  return step;
}

}  // namespace latentbit
