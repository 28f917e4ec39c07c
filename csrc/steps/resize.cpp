// Steps whose output map has another size: resizing, averages over windows that tile a map, and the second
// half of a transposed convolution. Portable code alone, so that every instruction set gives the same bits.
#include <algorithm>

#include "steps/checks.h"
#include "steps/row_step.h"

namespace latentbit {
namespace {

// a (1 - share) + b share; b is not looked at where its share is 0.
inline void mix(const float* a, const float* b, float share, int n, float* out) {
  if (share == 0) {
    std::copy(a, a + n, out);
    return;
  }
  const float rest = 1.0f - share;
  for (int i = 0; i < n; ++i) out[i] = a[i] * rest + b[i] * share;
}

class ResizeStep final : public RowStep {
 public:
  ResizeStep(const Value& in, Places rows, Places columns, FinishSpec finish)
      : RowStep(static_cast<int>(rows.from.size()), static_cast<int>(columns.from.size()), std::move(finish)),
        in_(in),
        rows_(std::move(rows)),
        columns_(std::move(columns)) {}

  size_t scratch_bytes() const override { return RowStep::scratch_bytes() + 2 * sizeof(float) * channels(); }

 protected:
  void row(const Run& run, int image, int y, float* out) const override {
    const int c = channels(), top = rows_.from[y], bottom = std::min(top + 1, in_.height - 1);
    const float* map = run.real(inputs[0], image);
    const float* upper = map + static_cast<size_t>(top) * in_.width * c;
    const float* lower = map + static_cast<size_t>(bottom) * in_.width * c;
    for (int x = 0; x < pixels(); ++x, out += c) {
      const int left = columns_.from[x], right = std::min(left + 1, in_.width - 1);
      const float across = columns_.share[x], down = rows_.share[y];
      const size_t a = static_cast<size_t>(left) * c, b = static_cast<size_t>(right) * c;
      const float rest = 1.0f - across;
      if (down == 0) {
        mix(upper + a, upper + b, across, c, out);
      } else if (across == 0) {
        mix(upper + a, lower + a, down, c, out);
      } else {
        const float stay = 1.0f - down;
        for (int i = 0; i < c; ++i)
          out[i] = (upper[a + i] * rest + upper[b + i] * across) * stay +
                   (lower[a + i] * rest + lower[b + i] * across) * down;
      }
    }
  }

 private:
  Value in_;
  Places rows_, columns_;
};

// Output i of n averages the inputs from floor(i size / n) to ceil((i + 1) size / n).
class AdaptivePoolStep final : public RowStep {
 public:
  AdaptivePoolStep(const Value& in, int height, int width, FinishSpec finish)
      : RowStep(height, width, std::move(finish)), in_(in), height_(height) {}

 protected:
  void row(const Run& run, int image, int y, float* out) const override {
    const int c = channels(), top = begin(y, in_.height, height_), bottom = end(y, in_.height, height_);
    for (int x = 0; x < pixels(); ++x, out += c) {
      const int left = begin(x, in_.width, pixels()), right = end(x, in_.width, pixels());
      std::fill(out, out + c, 0.0f);
      for (int iy = top; iy < bottom; ++iy)
        for (int ix = left; ix < right; ++ix) {
          const float* from = run.real(inputs[0], image) + (static_cast<size_t>(iy) * in_.width + ix) * c;
          for (int i = 0; i < c; ++i) out[i] += from[i];
        }
      const float n = static_cast<float>(int64_t{bottom - top} * (right - left));
      for (int i = 0; i < c; ++i) out[i] /= n;
    }
  }

 private:
  static int begin(int64_t i, int64_t size, int64_t n) { return static_cast<int>(i * size / n); }
  static int end(int64_t i, int64_t size, int64_t n) {
    return static_cast<int>(((i + 1) * size + n - 1) / n);
  }

  Value in_;
  int height_;
};

// What every tap of a transposed convolution makes of every input pixel, [group][ky][kx][channel of the
// group], summed where it belongs: input i reaches the outputs i stride - padding + k dilation.
class SumTapsStep final : public RowStep {
 public:
  SumTapsStep(const Value& in, int groups, const Geometry& geometry, int height, int width, FinishSpec finish)
      : RowStep(height, width, std::move(finish)), in_(in), groups_(groups), geometry_(geometry) {}

 protected:
  void row(const Run& run, int image, int y, float* out) const override {
    const Geometry& g = geometry_;
    const int c = channels() / groups_, taps = g.kernel[0] * g.kernel[1];
    const float* map = run.real(inputs[0], image);
    std::fill(out, out + numbers(), 0.0f);
    for (int ky = 0; ky < g.kernel[0]; ++ky) {
      const int iy = source(y, ky, 0, in_.height);
      if (iy < 0) continue;
      for (int x = 0; x < pixels(); ++x)
        for (int kx = 0; kx < g.kernel[1]; ++kx) {
          const int ix = source(x, kx, 1, in_.width);
          if (ix < 0) continue;
          const float* from = map + (static_cast<size_t>(iy) * in_.width + ix) * in_.channels +
                              static_cast<size_t>(ky * g.kernel[1] + kx) * c;
          float* to = out + static_cast<size_t>(x) * channels();
          for (int group = 0; group < groups_; ++group, from += static_cast<size_t>(taps) * c, to += c)
            for (int i = 0; i < c; ++i) to[i] += from[i];
        }
    }
  }

 private:
  // The input that reaches output `at` through tap k along an axis, or -1.
  int source(int at, int k, int axis, int size) const {
    const int64_t spread = int64_t{at} + geometry_.padding[axis] - int64_t{k} * geometry_.dilation[axis];
    if (spread < 0 || spread % geometry_.stride[axis]) return -1;
    const int64_t i = spread / geometry_.stride[axis];
    return i < size ? static_cast<int>(i) : -1;
  }

  Value in_;
  int groups_;
  Geometry geometry_;
};

void check_places(const Places& places, int size) {
  need(!places.from.empty() && places.from.size() == places.share.size() &&
           places.from.size() <= static_cast<size_t>(kMaxNumbers),
       "places of another size");
  for (int from : places.from) need(from >= 0 && from < size, "a place outside the map");
  for (float share : places.share) need(share >= 0 && share <= 1, "a share outside 0 to 1");
}

// A real map in, a finish of `height` by `width` out.
const Value& check_map(const Program& program, int input, int channels, int height, int width,
                       const FinishSpec& finish) {
  const Value& in = program.value(input);
  need(!in.bits && input != kInput && finish.dot_threshold.empty(), "a map of the wrong kind");
  need(height >= 1 && width >= 1 && int64_t{height} * width <= kMaxNumbers, "a map of the wrong size");
  check_finish(program, finish, channels, height * width);
  return in;
}

}  // namespace

std::unique_ptr<Step> resize_step(const Program& program, int input, Places rows, Places columns,
                                  FinishSpec finish) {
  const Value& in = program.value(input);
  check_places(rows, in.height);
  check_places(columns, in.width);
  check_map(program, input, in.channels, static_cast<int>(rows.from.size()),
            static_cast<int>(columns.from.size()), finish);
  const Ends ends = ends_of(finish);
  auto step = std::make_unique<ResizeStep>(in, std::move(rows), std::move(columns), std::move(finish));
  step->connect("resize", {input}, ends);
  return step;
}

std::unique_ptr<Step> adaptive_pool_step(const Program& program, int input, int height, int width,
                                         FinishSpec finish) {
  const Value& in = check_map(program, input, program.value(input).channels, height, width, finish);
  const Ends ends = ends_of(finish);
  auto step = std::make_unique<AdaptivePoolStep>(in, height, width, std::move(finish));
  step->connect("adaptive_avg_pool", {input}, ends);
  return step;
}

std::unique_ptr<Step> sum_taps_step(const Program& program, int input, int groups, const Geometry& geometry,
                                    int height, int width, FinishSpec finish) {
  const int channels = finish.channels;
  const Value& in = check_map(program, input, channels, height, width, finish);
  for (int axis : {0, 1})
    need(geometry.kernel[axis] >= 1 && geometry.stride[axis] >= 1 && geometry.dilation[axis] >= 1 &&
             geometry.padding[axis] >= 0,
         "an empty window");
  const int64_t taps = int64_t{geometry.kernel[0]} * geometry.kernel[1];
  need(groups >= 1 && channels % groups == 0 && taps <= kMaxTaps && taps * channels == in.channels,
       "taps of another number of channels");
  const Ends ends = ends_of(finish);
  auto step = std::make_unique<SumTapsStep>(in, groups, geometry, height, width, std::move(finish));
  step->connect("sum_taps", {input}, ends);
  return step;
}

}  // namespace latentbit
