// From accumulators to memory with AVX-512: 16 channels are one register.
#include <immintrin.h>

#include "kernels/avx512.h"
#include "kernels/finish_rows.h"

namespace latentbit {
namespace {

struct Avx512Sixteen {
  using Vector = __m512;

  static LATENTBIT_INLINE Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static LATENTBIT_INLINE void store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
  static LATENTBIT_INLINE Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static LATENTBIT_INLINE Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static LATENTBIT_INLINE Vector relu(Vector y) { return _mm512_max_ps(_mm512_setzero_ps(), y); }
  // Chooses by the sign bit: -0 * slope is a zero either way.
  static LATENTBIT_INLINE Vector prelu(Vector y, Vector slope) {
    return _mm512_mask_mul_ps(y, _mm512_movepi32_mask(_mm512_castps_si512(y)), y, slope);
  }
  static LATENTBIT_INLINE Vector clamp(Vector y, float low, float high) {
    return _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), y));
  }
  static LATENTBIT_INLINE unsigned less(Vector y, Vector threshold) {
    return _mm512_cmp_ps_mask(y, threshold, _CMP_LT_OQ);
  }
  static LATENTBIT_INLINE __m512i dots(const uint16_t* counts, int n) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(counts));
    const __m256i dots = _mm256_sub_epi16(_mm256_set1_epi16(static_cast<int16_t>(n)), _mm256_add_epi16(x, x));
    return _mm512_cvtepi16_epi32(dots);
  }
  static LATENTBIT_INLINE Vector from_counts(const uint16_t* counts, int n) {
    return _mm512_cvtepi32_ps(dots(counts, n));
  }
  static LATENTBIT_INLINE unsigned dots_less(const uint16_t* counts, int n, const int32_t* threshold) {
    return _mm512_cmplt_epi32_mask(dots(counts, n), _mm512_loadu_si512(threshold));
  }
};

using Rows = FinishRows<Avx512Sixteen>;

}  // namespace

void finish_counts_avx512(const Finish& f, const uint16_t* counts, const int* taps, int in_channels,
                          int first, int pixels, int block) {
  Rows::finish_counts(f, counts, taps, in_channels, first, pixels, block);
}

void finish_real_avx512(const Finish& f, const float* values, int first, int pixels) {
  Rows::finish_real(f, values, first, pixels);
}

}  // namespace latentbit
