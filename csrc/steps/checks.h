// What every step checks before it is built. Reports are std::invalid_argument.
#pragma once

#include <stdexcept>

#include "steps/steps.h"

namespace latentbit {

inline void need(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

// Values and arrays of a finish fit a result of this shape.
void check_finish(const Program& program, const FinishSpec& finish, int channels, int pixels);

// Sizes that native code may count in 32 bits, and groups that divide the channels.
void check_convolution(const Value& in, int out_channels, int groups, const Geometry& geometry);

}  // namespace latentbit
