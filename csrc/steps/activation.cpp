// Activations that curve, and the product of two values. Portable code alone, so that every instruction set
// gives the same bits: the compiler makes vectors of it, and nothing is contracted.
#include <cmath>
#include <cstring>

#include "steps/checks.h"
#include "steps/row_step.h"

namespace latentbit {
namespace {

// exp(-t) for t in [0, 87], within 2 units in the last place: t = n ln 2 + r with |r| <= ln 2 / 2, and
// exp(-t) = 2^-n exp(-r) with a polynomial for exp(-r). Larger t give 0, NaN stays NaN.
inline float exp_of_minus(float t) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, in the low bits
  constexpr float kLog2e = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const float shifted = t * kLog2e + kRound;
  const float n = shifted - kRound;
  const float r = (n * kLn2High - t) + n * kLn2Low;  // -(t - n ln 2)
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.0f;
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (127u - bits) << 23;  // 2^-n; the bits of kRound above the integer are shifted out
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return t > 87.0f ? 0.0f : p * power;
}

inline float sigmoid(float x) {
  const float e = exp_of_minus(std::fabs(x));
  return (x < 0 ? e : 1.0f) / (1.0f + e);
}

inline float relu6(float x) { return x < 0 ? 0.0f : x > 6 ? 6.0f : x; }

class CurveStep final : public RowStep {
 public:
  CurveStep(Curve curve, const Value& in, FinishSpec finish)
      : RowStep(in.height, in.width, std::move(finish)), curve_(curve) {}

 protected:
  void row(const Run& run, int image, int y, float* out) const override {
    const float* x = run.real(inputs[0], image) + numbers() * y;
    switch (curve_) {
      case Curve::sigmoid:
        for (size_t i = 0; i < numbers(); ++i) out[i] = sigmoid(x[i]);
        break;
      case Curve::silu:
        for (size_t i = 0; i < numbers(); ++i) out[i] = x[i] * sigmoid(x[i]);
        break;
      case Curve::hard_sigmoid:
        for (size_t i = 0; i < numbers(); ++i) out[i] = relu6(x[i] + 3.0f) / 6.0f;
        break;
      case Curve::hard_swish:
        for (size_t i = 0; i < numbers(); ++i) out[i] = x[i] * relu6(x[i] + 3.0f) / 6.0f;
        break;
    }
  }

 private:
  Curve curve_;
};

// The second input has the size of the first, or one pixel: a gate per channel.
class MultiplyStep final : public RowStep {
 public:
  MultiplyStep(const Value& in, bool gate, FinishSpec finish)
      : RowStep(in.height, in.width, std::move(finish)), gate_(gate) {}

 protected:
  void row(const Run& run, int image, int y, float* out) const override {
    const float* x = run.real(inputs[0], image) + numbers() * y;
    const float* by = run.real(inputs[1], image);
    if (!gate_) by += numbers() * y;
    const size_t block = gate_ ? channels() : numbers();
    for (const float* end = x + numbers(); x < end; x += block, out += block)
      for (size_t i = 0; i < block; ++i) out[i] = x[i] * by[i];
  }

 private:
  bool gate_;
};

}  // namespace

std::unique_ptr<Step> curve_step(const Program& program, int input, Curve curve, FinishSpec finish) {
  const Value& in = program.value(input);
  need(!in.bits && input != kInput && finish.dot_threshold.empty(), "an activation of the wrong value");
  check_finish(program, finish, in.channels, in.pixels());
  const Ends ends = ends_of(finish);
  auto step = std::make_unique<CurveStep>(curve, in, std::move(finish));
  step->connect("activation", {input}, ends);
  return step;
}

std::unique_ptr<Step> multiply_step(const Program& program, int input, int by, FinishSpec finish) {
  const Value &in = program.value(input), &other = program.value(by);
  const bool same = in.height == other.height && in.width == other.width;
  need(!in.bits && !other.bits && input != kInput && by != kInput && finish.dot_threshold.empty(),
       "a product of the wrong values");
  need(in.channels == other.channels && (same || other.pixels() == 1), "a product of unlike values");
  check_finish(program, finish, in.channels, in.pixels());
  const Ends ends = ends_of(finish);
  auto step = std::make_unique<MultiplyStep>(in, !same, std::move(finish));
  step->connect("multiply", {input, by}, ends);
  return step;
}

}  // namespace latentbit
