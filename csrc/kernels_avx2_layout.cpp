// Between planar tensors, as users have them, and channels last, with AVX2.
#include <immintrin.h>

#include "kernels_avx2.h"

namespace latentbit {
namespace {

// 8 x 8 floats: pairs, then quads, then halves.
void transpose_tile(const float* in, int in_stride, float* out, int out_stride) {
  __m256 row[8], pair[8], quad[8];
  for (int i = 0; i < 8; ++i) row[i] = _mm256_loadu_ps(in + static_cast<size_t>(i) * in_stride);
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; ++k) {
      quad[i + 2 * k] = _mm256_shuffle_ps(pair[i + k], pair[i + 2 + k], 0x44);
      quad[i + 2 * k + 1] = _mm256_shuffle_ps(pair[i + k], pair[i + 2 + k], 0xee);
    }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(out + static_cast<size_t>(i) * out_stride,
                     _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20));
    _mm256_storeu_ps(out + static_cast<size_t>(i + 4) * out_stride,
                     _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31));
  }
}

}  // namespace

void transpose_avx2(const float* in, int rows, int columns, int in_stride, float* out, int out_stride) {
  const int whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
  for (int i = 0; i < whole_rows; i += 8)
    for (int j = 0; j < whole_columns; j += 8)
      transpose_tile(in + static_cast<size_t>(i) * in_stride + j, in_stride,
                     out + static_cast<size_t>(j) * out_stride + i, out_stride);
  for (int i = 0; i < rows; ++i)
    for (int j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      out[static_cast<size_t>(j) * out_stride + i] = in[static_cast<size_t>(i) * in_stride + j];
}

// 8 pixels at a time: a comparison gives all ones or zeros per pixel, of which bit c % 32 is kept.
void sign_planar_avx2(const Finish& f, const float* planar, int plane, int first, int pixels) {
  const int words = words_for(f.channels);
  int p = first;
  for (; p + 8 <= first + pixels; p += 8)
    for (int half = 0; half < 2 * words; ++half) {
      const int begin = 32 * half, end = f.channels < begin + 32 ? f.channels : begin + 32;
      __m256i bits = _mm256_setzero_si256(), bit = _mm256_set1_epi32(1);
      for (int c = begin; c < end; ++c, bit = _mm256_add_epi32(bit, bit)) {
        const __m256 x = _mm256_loadu_ps(planar + static_cast<size_t>(c) * plane + p);
        const __m256 less = _mm256_cmp_ps(x, _mm256_broadcast_ss(f.threshold + c), _CMP_LT_OQ);
        bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_castps_si256(less), bit));
      }
      alignas(32) uint32_t lanes[8];
      _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), bits);
      auto* out = reinterpret_cast<uint32_t*>(f.bits + static_cast<size_t>(p) * words) + half;
      const auto flip = static_cast<uint32_t>(f.flip[half / 2] >> (32 * (half % 2)));
      for (int i = 0; i < 8; ++i) out[static_cast<size_t>(i) * 2 * words] = lanes[i] ^ flip;
    }
  if (p < first + pixels) scalar_kernels().sign_planar(f, planar, plane, p, first + pixels - p);
}

}  // namespace latentbit
