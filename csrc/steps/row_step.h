// A step that computes its result row by row and finishes each row: scale, shortcut, activation, sign.
#pragma once

#include "steps/steps.h"

namespace latentbit {

class RowStep : public Step {
 public:
  RowStep(int rows, int pixels, FinishSpec finish)
      : rows_(rows), pixels_(pixels), finish_(std::move(finish)) {}

  size_t scratch_bytes() const override { return sizeof(float) * pixels_ * finish_.channels; }

  void run(const Run& run) const final {
    run.each(rows_, [&](int image, int y, int thread) {
      const Finish f = finish_.at(run, image);
      const bool direct = finish_.trivial();
      float* out = direct ? f.real + static_cast<size_t>(y) * pixels_ * f.channels
                          : reinterpret_cast<float*>(run.scratch[thread].data());
      row(run, image, y, out);
      if (!direct) run.kernels->finish_real(f, out, y * pixels_, pixels_);
    });
  }

 protected:
  // Row y of an image into out: [pixel][channels].
  virtual void row(const Run& run, int image, int y, float* out) const = 0;

  int channels() const { return finish_.channels; }
  int pixels() const { return pixels_; }
  size_t numbers() const { return static_cast<size_t>(pixels_) * finish_.channels; }

 private:
  int rows_, pixels_;
  FinishSpec finish_;
};

}  // namespace latentbit
