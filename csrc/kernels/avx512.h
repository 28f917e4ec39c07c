// The parts of the AVX-512 tables, one file each.
#pragma once

#include "kernels/kernels.h"

namespace latentbit {

BinaryKernels<uint16_t> avx512_popcount_kernels();  // needs VPOPCNTDQ
BinaryKernels<uint16_t> avx512_nibble_kernels();    // needs AVX512BW
void finish_counts_avx512(const Finish&, const uint16_t* counts, const int* taps, int in_channels, int first,
                          int pixels, int block);
void finish_real_avx512(const Finish&, const float* values, int first, int pixels);
void sign_planar_avx512(const Finish&, const float* planar, int plane, int first, int pixels);
const PairKernels& avx512_pair_kernels();
void normalise_avx512(const uint8_t* in, size_t n, float mean, float std, float* out);
void conv_row_bytes_avx512(const ByteConvShape&, const int8_t* panels, const float* scales, const float* bias,
                           const uint16_t* classes, const uint8_t* frame, int oy, int pixels, float* out,
                           int out_stride);  // needs VNNI
void transpose_avx512(const float* in, int rows, int columns, int in_stride, float* out, int out_stride);

}  // namespace latentbit
