// Between planar tensors, as users have them, and channels last, with AVX-512.
#include <immintrin.h>

#include "kernels/avx512.h"

namespace latentbit {
namespace {

using HalfWord = uint32_t __attribute__((may_alias));

// 16 x 16 floats. Two rounds of unpacking put 4 x 4 blocks in order within the 128-bit parts, two rounds of
// moving parts put the blocks in order.
void transpose_tile(const float* in, int in_stride, float* out, int out_stride) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_ps(in + static_cast<size_t>(i) * in_stride);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  // a[4 q + k] holds column 4 part + k of rows 4 q to 4 q + 3, for each of its four parts.
  for (int i = 0; i < 16; i += 4)
    for (int k = 0; k < 2; ++k) {
      const __m512d low = _mm512_castps_pd(b[i + k]), high = _mm512_castps_pd(b[i + 2 + k]);
      a[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
      a[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
    }
  for (int k = 0; k < 4; ++k) {
    const __m512 even_top = _mm512_shuffle_f32x4(a[k], a[4 + k], 0x88);
    const __m512 odd_top = _mm512_shuffle_f32x4(a[k], a[4 + k], 0xdd);
    const __m512 even_bottom = _mm512_shuffle_f32x4(a[8 + k], a[12 + k], 0x88);
    const __m512 odd_bottom = _mm512_shuffle_f32x4(a[8 + k], a[12 + k], 0xdd);
    const __m512 columns[4] = {
        _mm512_shuffle_f32x4(even_top, even_bottom, 0x88), _mm512_shuffle_f32x4(odd_top, odd_bottom, 0x88),
        _mm512_shuffle_f32x4(even_top, even_bottom, 0xdd), _mm512_shuffle_f32x4(odd_top, odd_bottom, 0xdd)};
    for (int part = 0; part < 4; ++part)
      _mm512_storeu_ps(out + static_cast<size_t>(4 * part + k) * out_stride, columns[part]);
  }
}

}  // namespace

void normalise_avx512(const uint8_t* in, size_t n, float mean, float std, float* out) {
  const __m512 full = _mm512_set1_ps(255), m = _mm512_set1_ps(mean), s = _mm512_set1_ps(std);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    const __m512 x = _mm512_div_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)), full);
    _mm512_storeu_ps(out + i, _mm512_div_ps(_mm512_sub_ps(x, m), s));
  }
  scalar_kernels().normalise(in + i, n - i, mean, std, out + i);
}

void transpose_avx512(const float* in, int rows, int columns, int in_stride, float* out, int out_stride) {
  const int whole_rows = rows / 16 * 16, whole_columns = columns / 16 * 16;
  for (int i = 0; i < whole_rows; i += 16)
    for (int j = 0; j < whole_columns; j += 16)
      transpose_tile(in + static_cast<size_t>(i) * in_stride + j, in_stride,
                     out + static_cast<size_t>(j) * out_stride + i, out_stride);
  for (int i = 0; i < rows; ++i)
    for (int j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      out[static_cast<size_t>(j) * out_stride + i] = in[static_cast<size_t>(i) * in_stride + j];
}

// 16 pixels at a time: the mask of a comparison, one bit per pixel, adds bit c % 32 where it is set.
void sign_planar_avx512(const Finish& f, const float* planar, int plane, int first, int pixels) {
  const int words = words_for(f.channels);
  int p = first;
  for (; p + 16 <= first + pixels; p += 16)
    for (int half = 0; half < 2 * words; ++half) {
      const int begin = 32 * half, end = f.channels < begin + 32 ? f.channels : begin + 32;
      __m512i bits = _mm512_setzero_si512(), bit = _mm512_set1_epi32(1);
      for (int c = begin; c < end; ++c, bit = _mm512_add_epi32(bit, bit)) {
        const __m512 x = _mm512_loadu_ps(planar + static_cast<size_t>(c) * plane + p);
        const __mmask16 less = _mm512_cmp_ps_mask(x, _mm512_set1_ps(f.threshold[c]), _CMP_LT_OQ);
        bits = _mm512_mask_or_epi32(bits, less, bits, bit);
      }
      alignas(64) uint32_t lanes[16];
      _mm512_store_si512(lanes, bits);
      auto* out = reinterpret_cast<HalfWord*>(f.bits + static_cast<size_t>(p) * words) + half;
      const auto flip = static_cast<uint32_t>(f.flip[half / 2] >> (32 * (half % 2)));
      for (int i = 0; i < 16; ++i) out[static_cast<size_t>(i) * 2 * words] = lanes[i] ^ flip;
    }
  if (p < first + pixels) scalar_kernels().sign_planar(f, planar, plane, p, first + pixels - p);
}

}  // namespace latentbit
