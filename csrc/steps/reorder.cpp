// Steps that put the numbers of a value in another order.
#include <algorithm>

#include "steps/checks.h"

namespace latentbit {
namespace {

// The same numbers in the order channel, row, column, cut into another shape.
class ReshapeStep final : public Step {
 public:
  void run(const Run& run) const override {
    const Value &in = run.value(inputs[0]), &out = run.value(outputs[0]);
    const size_t in_pixels = in.pixels(), out_pixels = out.pixels();
    run.each(1, [&](int image, int, int) {
      const float* from = run.real(inputs[0], image);
      float* to = run.real(outputs[0], image);
      size_t channel = 0, pixel = 0;  // of the input
      for (int c = 0; c < out.channels; ++c)
        for (size_t p = 0; p < out_pixels; ++p) {
          to[p * out.channels + c] = from[pixel * in.channels + channel];
          if (++pixel == in_pixels) pixel = 0, ++channel;
        }
    });
  }
};

// Axis i of the output (channel, row, column) is axis order[i] of the input.
class PermuteStep final : public Step {
 public:
  explicit PermuteStep(const std::array<int, 3>& order) : order_(order) {}

  void run(const Run& run) const override {
    const Value &in = run.value(inputs[0]), &out = run.value(outputs[0]);
    const size_t steps[] = {1, static_cast<size_t>(in.width) * in.channels, static_cast<size_t>(in.channels)};
    const size_t channel = steps[order_[0]], row = steps[order_[1]], column = steps[order_[2]];
    run.each(out.height, [&](int image, int y, int) {
      const float* from = run.real(inputs[0], image) + row * y;
      float* to = run.real(outputs[0], image) + static_cast<size_t>(y) * out.width * out.channels;
      for (int x = 0; x < out.width; ++x)
        for (int c = 0; c < out.channels; ++c) *to++ = from[column * x + channel * c];
    });
  }

 private:
  std::array<int, 3> order_;
};

}  // namespace

std::unique_ptr<Step> reshape_step(const Program& program, int input, int output) {
  const Value &in = program.value(input), &out = program.value(output);
  need(!in.bits && !out.bits && input != kInput, "reshape of the wrong value");
  need(int64_t{in.channels} * in.pixels() == int64_t{out.channels} * out.pixels(),
       "reshape into another size");
  auto step = std::make_unique<ReshapeStep>();
  step->connect("reshape", {input}, {kNone, output, kNone});
  return step;
}

std::unique_ptr<Step> permute_step(const Program& program, int input, const std::array<int, 3>& order,
                                   int output) {
  const Value &in = program.value(input), &out = program.value(output);
  need(!in.bits && !out.bits && input != kInput, "permute of the wrong value");
  const int sizes[] = {in.channels, in.height, in.width};
  int seen = 0;
  for (int axis : order) {
    need(axis >= 0 && axis < 3, "no such axis");
    seen |= 1 << axis;
  }
  need(seen == 7, "an axis twice");
  need(out.channels == sizes[order[0]] && out.height == sizes[order[1]] && out.width == sizes[order[2]],
       "permute into another shape");
  auto step = std::make_unique<PermuteStep>(order);
  step->connect("permute", {input}, {kNone, output, kNone});
  return step;
}

}  // namespace latentbit
