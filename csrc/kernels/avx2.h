// The parts of the AVX2 table, one file each.
#pragma once

#include "kernels/kernels.h"

namespace latentbit {

BinaryKernels<uint16_t> avx2_binary_kernels();
void finish_counts_avx2(const Finish&, const uint16_t* counts, const int* taps, int in_channels, int first,
                        int pixels, int block);
void finish_real_avx2(const Finish&, const float* values, int first, int pixels);
void sign_planar_avx2(const Finish&, const float* planar, int plane, int first, int pixels);
void normalise_avx2(const uint8_t* in, size_t n, float mean, float std, float* out);
void split_pixels_avx2(const uint8_t* pixels, int channels, int n, uint8_t* out, size_t plane);
void transpose_avx2(const float* in, int rows, int columns, int in_stride, float* out, int out_stride);

}  // namespace latentbit
