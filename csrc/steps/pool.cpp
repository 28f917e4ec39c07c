// Pooling.
#include <algorithm>

#include "steps/checks.h"
#include "steps/row_step.h"

namespace latentbit {
namespace {

class MaxPoolStep final : public RowStep {
 public:
  MaxPoolStep(const Window& window, FinishSpec finish)
      : RowStep(window.out_h, window.out_w, std::move(finish)), window_(window) {}

 protected:
  void row(const Run& run, int image, int y, float* out) const override {
    run.kernels->max_pool_row(window_, channels(), run.real(inputs[0], image), y, out);
  }

 private:
  Window window_;
};

class AvgPoolStep final : public Step {
 public:
  AvgPoolStep(const Window& window, int pad_bottom, int pad_right, bool count_include_pad, FinishSpec finish)
      : window_(window),
        pad_bottom_(pad_bottom),
        pad_right_(pad_right),
        count_include_pad_(count_include_pad),
        finish_(std::move(finish)) {}

  size_t scratch_bytes() const override { return sizeof(float) * finish_.channels; }

  void run(const Run& run) const override {
    run.each(window_.out_h, [&](int image, int y, int thread) {
      const Finish f = finish_.at(run, image);
      auto* sums = reinterpret_cast<float*>(run.scratch[thread].data());
      for (int x = 0; x < window_.out_w; ++x) {
        average(run.real(inputs[0], image), y, x, f.channels, sums);
        run.kernels->finish_real(f, sums, y * window_.out_w + x, 1);
      }
    });
  }

 private:
  void average(const float* image, int oy, int ox, int channels, float* sums) const {
    const Window& w = window_;
    int n = 0;
    std::fill(sums, sums + channels, 0.0f);
    for (int ky = 0; ky < w.kernel_h; ++ky)
      for (int kx = 0; kx < w.kernel_w; ++kx) {
        const int y = oy * w.stride_h + ky, x = ox * w.stride_w + kx;  // within the padded image
        n += count_include_pad_ && y < w.in_h + w.pad_top + pad_bottom_ &&
             x < w.in_w + w.pad_left + pad_right_;
        const int source = w.source(oy, ox, ky, kx);
        if (source < 0) continue;
        n += !count_include_pad_;
        const float* from = image + static_cast<size_t>(source) * channels;
        for (int c = 0; c < channels; ++c) sums[c] += from[c];
      }
    const float share = 1.0f / static_cast<float>(n ? n : 1);
    for (int c = 0; c < channels; ++c) sums[c] *= share;
  }

  Window window_;
  int pad_bottom_, pad_right_;
  bool count_include_pad_;
  FinishSpec finish_;
};

// The largest of +1 (bit 0) and -1 (bit 1) is the AND of the bits.
class BitsPoolStep final : public Step {
 public:
  explicit BitsPoolStep(const Window& window) : window_(window) {}

  void run(const Run& run) const override {
    const int words = words_for(run.value(inputs[0]).channels);
    run.each(window_.out_h, [&](int image, int y, int) {
      const uint64_t* in = run.bits(inputs[0], image);
      uint64_t* out = run.bits(outputs[0], image) + static_cast<size_t>(y) * window_.out_w * words;
      for (int x = 0; x < window_.out_w; ++x)
        for (int i = 0; i < words; ++i) {
          uint64_t all = ~uint64_t{0};
          for (int ky = 0; ky < window_.kernel_h; ++ky)
            for (int kx = 0; kx < window_.kernel_w; ++kx) {
              const int source = window_.source(y, x, ky, kx);
              if (source >= 0) all &= in[static_cast<size_t>(source) * words + i];
            }
          *out++ = all;
        }
    });
  }

 private:
  Window window_;
};

Window pool_window(const Program& program, int input, bool bits, const Geometry& g) {
  const Value& in = program.value(input);
  need(in.bits == bits && input != kInput, "a pooling of the wrong kind of value");
  const Window w = g.over(in.height, in.width);
  // Otherwise a window could lie wholly in the padding, where no largest value exists.
  need(w.pad_top < w.kernel_h && w.pad_left < w.kernel_w && (w.out_h - 1) * w.stride_h - w.pad_top < w.in_h &&
           (w.out_w - 1) * w.stride_w - w.pad_left < w.in_w,
       "a pooling window that sees no value");
  return w;
}

}  // namespace

std::unique_ptr<Step> max_pool_step(const Program& program, int input, const Geometry& geometry,
                                    FinishSpec finish) {
  const Window window = pool_window(program, input, false, geometry);
  check_finish(program, finish, program.value(input).channels, window.pixels());
  const Ends ends = ends_of(finish);
  auto step = std::make_unique<MaxPoolStep>(window, std::move(finish));
  step->connect("max_pool", {input}, ends);
  return step;
}

std::unique_ptr<Step> avg_pool_step(const Program& program, int input, const Geometry& geometry,
                                    bool count_include_pad, FinishSpec finish) {
  const Window window = pool_window(program, input, false, geometry);
  check_finish(program, finish, program.value(input).channels, window.pixels());
  const Ends ends = ends_of(finish);
  auto step = std::make_unique<AvgPoolStep>(window, geometry.padding[2], geometry.padding[3],
                                            count_include_pad, std::move(finish));
  step->connect("avg_pool", {input}, ends);
  return step;
}

std::unique_ptr<Step> bits_pool_step(const Program& program, int input, const Geometry& geometry,
                                     int output) {
  const Window window = pool_window(program, input, true, geometry);
  const Value &in = program.value(input), &out = program.value(output);
  need(out.bits && out.channels == in.channels && out.pixels() == window.pixels(),
       "a pooling into a value of another shape");
  auto step = std::make_unique<BitsPoolStep>(window);
  step->connect("max_pool", {input}, {kNone, kNone, output});
  return step;
}

}  // namespace latentbit
