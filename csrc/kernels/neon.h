// The parts of the NEON tables, one file each.
#pragma once

#include "kernels/kernels.h"

namespace latentbit {

void conv_row_bytes_neon_dot(const ByteConvShape&, const int8_t* panels, const float* scales,
                             const float* bias, const uint16_t* classes, const uint8_t* frame, int oy,
                             int pixels, float* out, int out_stride);  // needs the dot products of Armv8.2

}  // namespace latentbit
