// From accumulators to memory with AVX2: 16 channels are two registers.
#include <immintrin.h>

#include "kernels/avx2.h"
#include "kernels/finish_rows.h"

namespace latentbit {
namespace {

struct Avx2Sixteen {
  struct Vector {
    __m256 low, high;
  };

  static LATENTBIT_INLINE Vector load(const float* from) {
    return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
  }
  static LATENTBIT_INLINE void store(float* to, Vector x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
  }
  static LATENTBIT_INLINE Vector add(Vector a, Vector b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static LATENTBIT_INLINE Vector multiply(Vector a, Vector b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static LATENTBIT_INLINE Vector relu(Vector y) {
    return {_mm256_max_ps(_mm256_setzero_ps(), y.low), _mm256_max_ps(_mm256_setzero_ps(), y.high)};
  }
  // Blends on the sign bit: -0 * slope is a zero either way.
  static LATENTBIT_INLINE Vector prelu(Vector y, Vector slope) {
    return {_mm256_blendv_ps(y.low, _mm256_mul_ps(y.low, slope.low), y.low),
            _mm256_blendv_ps(y.high, _mm256_mul_ps(y.high, slope.high), y.high)};
  }
  static LATENTBIT_INLINE Vector clamp(Vector y, float low, float high) {
    const __m256 least = _mm256_set1_ps(low), most = _mm256_set1_ps(high);
    return {_mm256_min_ps(most, _mm256_max_ps(least, y.low)),
            _mm256_min_ps(most, _mm256_max_ps(least, y.high))};
  }
  static LATENTBIT_INLINE unsigned less(Vector y, Vector threshold) {
    const int low = _mm256_movemask_ps(_mm256_cmp_ps(y.low, threshold.low, _CMP_LT_OQ));
    const int high = _mm256_movemask_ps(_mm256_cmp_ps(y.high, threshold.high, _CMP_LT_OQ));
    return static_cast<unsigned>(low | high << 8);
  }
  static LATENTBIT_INLINE __m256i dots(const uint16_t* counts, int n) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(counts));
    return _mm256_sub_epi16(_mm256_set1_epi16(static_cast<int16_t>(n)), _mm256_add_epi16(x, x));
  }
  static LATENTBIT_INLINE Vector from_counts(const uint16_t* counts, int n) {
    const __m256i x = dots(counts, n);
    return {_mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(x))),
            _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm256_extracti128_si256(x, 1)))};
  }
  static unsigned dots_less(const uint16_t* counts, int n, const int32_t* threshold) {
    const __m256i x = dots(counts, n);
    const __m128i halves[2] = {_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)};
    unsigned bits = 0;
    for (int k = 0; k < 2; ++k) {
      const __m256i limit = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(threshold + 8 * k));
      const __m256i less = _mm256_cmpgt_epi32(limit, _mm256_cvtepi16_epi32(halves[k]));
      bits |= static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(less))) << (8 * k);
    }
    return bits;
  }
};

using Rows = FinishRows<Avx2Sixteen>;

}  // namespace

void finish_counts_avx2(const Finish& f, const uint16_t* counts, const int* taps, int in_channels, int first,
                        int pixels, int block) {
  Rows::finish_counts(f, counts, taps, in_channels, first, pixels, block);
}

void finish_real_avx2(const Finish& f, const float* values, int first, int pixels) {
  Rows::finish_real(f, values, first, pixels);
}

}  // namespace latentbit
