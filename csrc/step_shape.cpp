// Element-wise steps and those that only move values, and the checks that all steps share.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "steps.h"

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

void need(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

template <typename T>
void need_size(const std::vector<T>& array, int n, const char* what) {
  need(array.empty() || array.size() >= static_cast<size_t>(n), what);
}

}  // namespace

Window Geometry::over(int in_h, int in_w) const {
  for (int v : {kernel[0], kernel[1], stride[0], stride[1], dilation[0], dilation[1]})
    need(v >= 1, "an empty window");
  for (int v : padding) need(v >= 0, "a negative padding");
  const int64_t padded_h = int64_t{in_h} + padding[0] + padding[2];
  const int64_t padded_w = int64_t{in_w} + padding[1] + padding[3];
  need(int64_t{kernel[0]} * kernel[1] <= kMaxTaps, "a window of too many taps");
  need(padded_h <= kMaxNumbers / padded_w, "a padded input of too many numbers");
  const int64_t room_h = padded_h - int64_t{dilation[0]} * (kernel[0] - 1) - 1;
  const int64_t room_w = padded_w - int64_t{dilation[1]} * (kernel[1] - 1) - 1;
  need(room_h >= 0 && room_w >= 0, "a kernel larger than its padded input");
  const int out_h = static_cast<int>(room_h / stride[0]) + 1,
            out_w = static_cast<int>(room_w / stride[1]) + 1;
  return {in_h,      in_w,      out_h,      out_w,      kernel[0],   kernel[1],
          stride[0], stride[1], padding[0], padding[1], dilation[0], dilation[1]};
}

void check_finish(const Program& program, const FinishSpec& f, int channels, int pixels) {
  need(f.channels == channels, "a finish for another number of channels");
  need(f.real != kNone || f.bits != kNone, "a step without output");
  for (int id : {f.real, f.bits, f.residual})
    if (id != kNone) need(id != kInput && program.value(id).pixels() == pixels, "a finish of another size");
  if (f.real != kNone)
    need(!program.value(f.real).bits && program.value(f.real).channels == channels, "real output");
  if (f.bits != kNone)
    need(program.value(f.bits).bits && program.value(f.bits).channels == channels, "bits output");
  if (f.residual != kNone) {
    const Value& residual = program.value(f.residual);
    need(!residual.bits && residual.channels == f.residual_channels && channels % residual.channels == 0,
         "shortcut");
  }
  need(f.scale.size() == f.bias.size(), "scale without bias");
  need(f.activation != Activation::prelu || !f.slope.empty(), "prelu without slope");
  need(f.dot_threshold.empty() || (f.bits != kNone && f.real == kNone), "an integer threshold gives bits");
  need_size(f.scale, channels, "scale");
  need_size(f.slope, channels, "slope");
  need_size(f.threshold, channels, "threshold");
  need_size(f.dot_threshold, channels, "integer threshold");
  need(static_cast<int>(f.flip.size()) >= words_for(channels), "flip");
}

std::unique_ptr<Step> finish_step(const Program& program, int input, FinishSpec finish) {
  const Value& in = program.value(input);
  need(!in.bits && input != kInput && finish.dot_threshold.empty(),
       "an element-wise step on the wrong value");
  check_finish(program, finish, in.channels, in.pixels());
  const FinishSpec ends = finish;
  auto step = std::make_unique<FinishStep>(std::move(finish));
  step->op = "elementwise";
  step->inputs = {input};
  if (ends.residual != kNone) step->inputs.push_back(ends.residual);
  if (ends.real != kNone) step->outputs.push_back(ends.real);
  if (ends.bits != kNone) step->outputs.push_back(ends.bits);
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
  step->op = "concat";
  step->inputs = inputs;
  step->outputs = {output};
  return step;
}

std::unique_ptr<Step> flatten_step(const Program& program, int input, int output) {
  const Value &in = program.value(input), &out = program.value(output);
  need(input != kInput && in.bits == out.bits && out.pixels() == 1, "flatten of the wrong value");
  need(int64_t{in.channels} * in.pixels() == out.channels, "flatten into another size");
  auto step = std::make_unique<FlattenStep>();
  step->op = "flatten";
  step->inputs = {input};
  step->outputs = {output};
  return step;
}

std::unique_ptr<Step> sign_input_step(const Program& program, FinishSpec finish) {
  const Value& in = program.value(kInput);
  check_finish(program, finish, in.channels, in.pixels());
  need(finish.bits != kNone && finish.real == kNone && finish.residual == kNone && finish.scale.empty(),
       "only a sign");
  const int bits = finish.bits;
  auto step = std::make_unique<SignInputStep>(std::move(finish));
  step->op = "sign";
  step->inputs = {kInput};
  step->outputs = {bits};
  return step;
}

std::unique_ptr<Step> channels_last_step(const Program& program, int output) {
  const Value &in = program.value(kInput), &out = program.value(output);
  need(!out.bits && out.channels == in.channels && out.height == in.height && out.width == in.width,
       "input copy");
  auto step = std::make_unique<ChannelsLastStep>();
  step->op = "channels_last";
  step->inputs = {kInput};
  step->outputs = {output};
  return step;
}

}  // namespace latentbit
