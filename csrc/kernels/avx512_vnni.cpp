// Convolution of bytes with AVX-512 VNNI: 64 products per instruction.
#include <immintrin.h>

#include "kernels/avx512.h"
#include "kernels/byte_rows.h"

namespace latentbit {
namespace {

struct Vnni {
  using Ints = __m512i;
  using Bytes = __m512i;
  using Floats = __m512;
  static constexpr int kLanes = 16, kTilePixels = 6, kTilePanels = 4;

  static LATENTBIT_INLINE Ints start(const int32_t*) { return _mm512_setzero_si512(); }
  static LATENTBIT_INLINE Bytes weights(const int8_t* from) { return _mm512_loadu_si512(from); }
  static LATENTBIT_INLINE Bytes spread(const uint8_t* from) {
    int32_t four;
    __builtin_memcpy(&four, from, sizeof four);
    return _mm512_set1_epi32(four);
  }
  static LATENTBIT_INLINE Ints dot(Ints sums, Bytes pixels, Bytes weights) {
    return _mm512_dpbusd_epi32(sums, pixels, weights);
  }
  static LATENTBIT_INLINE Floats to_float(Ints x) { return _mm512_cvtepi32_ps(x); }
  static LATENTBIT_INLINE Floats load(const float* from) { return _mm512_loadu_ps(from); }
  static LATENTBIT_INLINE void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
  static LATENTBIT_INLINE Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static LATENTBIT_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
};

}  // namespace

void conv_row_bytes_avx512(const ByteConvShape& s, const int8_t* panels, const float* scales,
                           const float* bias, const uint16_t* classes, const uint8_t* frame, int oy,
                           int pixels, float* out, int out_stride) {
  ByteRows<Vnni>::conv_row_bytes(s, panels, scales, bias, classes, frame, oy, pixels, out, out_stride);
}

}  // namespace latentbit
