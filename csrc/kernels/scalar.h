// What the vector kernels borrow from the portable ones: tails of channels, and dot products beyond 16 bits.
#pragma once

#include "kernels/kernels.h"

namespace latentbit {

// Finish channels [first_channel, first_channel + channels) of one pixel; first_channel is a multiple of
// kBlock.
void finish_values(const Finish& f, const float* values, int pixel, int first_channel, int channels);

BinaryKernels<uint32_t> wide_scalar_kernels();

}  // namespace latentbit
